// Package kubernetes has no code: its tests hold the manifests beside it to the types of the Kubernetes API, to each
// other, and to what feira itself says of its flags, variables and paths. It is a module of its own because of the size of
// those types.
package kubernetes
