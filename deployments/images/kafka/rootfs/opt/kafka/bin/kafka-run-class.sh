#!/bin/bash
exec /opt/java/bin/java -cp '/opt/kafka/libs/*' ${KAFKA_HEAP_OPTS:--Xmx128m} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto \
  -Dlog4j2.configurationFile=/etc/kafka/docker/tools-log4j2.yaml "$@"
