// Package load puts load on a shop and measures what its customers would feel.
//
// Open loop ([Options.Rate]): requests are due at fixed times, whether or not earlier ones were answered, and
// latency counts from when a request was due. A shop that stalls for a second thus shows in every request that
// was due in it, instead of delaying the load itself (coordinated omission). Closed loop ([Options.Clients]):
// so many clients, each sending its next request when it has the answer to the last.
//
// Everything is bounded: the rate, the clients, the requests in flight, the duration.
package load
