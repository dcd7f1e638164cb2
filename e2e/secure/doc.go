// Package secure proves the shop on Kafka as it is run in production: three brokers in containers that speak TLS only and
// let nobody in who does not sign in by SCRAM or show a certificate. One of them is killed on the way. Its test has the
// build tag e2e; run it with
//
//	make secure-test                             needs Docker; brokers of feira-kafka:4.4.0, which make images
//	                                             builds, else of apache/kafka:4.4.0
//	make secure-test KAFKA=4.0.0                 another version
//	make secure-test KAFKA_IMAGE=example/kafka   another image, with the environment of the official one
package secure
