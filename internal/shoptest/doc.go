// Package shoptest starts the whole shop in a test's process: every service with a database of its own, an embedded
// broker, the payment provider as a server of its own, and the public API behind its gateway on a loopback port. Nothing
// in it is a fake but the broker and the provider's customers' banks.
//
// Tests speak to it as customers do, over HTTP. Several may share one shop: each makes its own customers, cards and
// products. When the test that started the shop ends, every order must have come to an end and the oracle must find no
// difference between any table and the event stores.
//
// [Connect] gives a shop of real processes, which somebody else runs, to the same tests; what customers do in either is
// in the package journeys.
package shoptest
