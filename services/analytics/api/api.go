// Package api is the HTTP boundary of analytics, generated from the shop's OpenAPI description.
package api

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config server.cfg.yaml ../../../api/openapi.yaml
