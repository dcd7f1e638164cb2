// Package compose proves the Compose file as a user would use it: up on new volumes, orders over the public address,
// more replicas under load, main processes killed from outside, down and up, and the books at the end. Its tests have
// the build tag e2e; make compose-test runs them. They need a Docker engine with Compose and the images that the file
// names, which make images builds.
package compose
