// Package setup prepares a deployment: secrets that nobody has to think of ([Secrets]), and for each service a
// database with a login of its own ([Databases]). Both do only what is not done yet, so both may run before every
// start.
//
// Secrets are folders, one for each part of the deployment, so that each can be given its own and no other:
//
//	postgres/password    the superuser's, for the server and for [Databases]
//	<service>/feira.env  its database's address with the password; payments and provider: the key between them
//	<service>/jwks.json  the public key that customers' tokens are verified by
//	tools/               a feira.env with everything, and token.pem, which signs tokens
package setup
