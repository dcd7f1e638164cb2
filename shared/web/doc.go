// Package web is the HTTP boundary of a service: everything between the listener and the generated handlers.
//
// [New] makes a router from the OpenAPI description. A request passes these layers, outermost first:
//
//	trace         a span of the request, where traces are on
//	observe       request id, route, access log, feira_http_request_duration_seconds
//	recover       a panic becomes a 500 without its stack, which goes to the log
//	cors          only where origins are configured
//	route         404 and 405 as problem+json, from the description's own paths
//	authenticate  401 without a valid token, 403 without one of the operation's x-roles
//	limit rate    429 with Retry-After, per customer, or per address where nobody is signed in
//	deadline      the request's context ends (event streams are exempt)
//	validate      parameters and body against the description: 400, 413, 415, naming the field in param
//
// Cheap refusals come first, and nothing is read of a body before its sender is known. Responses are not
// validated; the generated types are what keeps them to the description.
//
// A handler returns an error and [Failures] translates it, by one table, into problem+json (RFC 9457). What is
// not an [Error], nor mapped to one by the service, is a 500 whose cause is logged and never shown. A service's
// routes are its generated server, with this table in all three places that can fail:
//
//	malformed, failed := web.Malformed(log), web.Failures(log, mappers...)
//	return api.HandlerWithOptions(
//		api.NewStrictHandlerWithOptions(handlers, nil, api.StrictHTTPServerOptions{
//			RequestErrorHandlerFunc: malformed, ResponseErrorHandlerFunc: failed,
//		}),
//		api.ChiServerOptions{ErrorHandlerFunc: malformed})
//
// An event stream is answered by a type of the service's own whose Visit method calls [ServeEvents] with the
// context that the handler got.
package web
