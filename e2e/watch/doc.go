// Package watch proves what watches the shop: promtool runs the tests of every alert, and a real Prometheus scrapes a
// running demo and must answer every query of the dashboards and rules with data. Its tests have the build tag e2e; run
// them with
//
//	make alerts        promtool: syntax, rules and their tests; seconds
//	make dashboards    Prometheus beside a demo: three minutes
//
// They need Prometheus 2.42 or newer (Debian's package prometheus has both programs) and fail without it. PROMTOOL and
// PROMETHEUS name other programs than those of the PATH, FEIRA_BINARY a built feira.
package watch
