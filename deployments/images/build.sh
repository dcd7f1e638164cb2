#!/usr/bin/env bash
# build.sh [KAFKA-VERSION]: all that the Compose file needs, and a deployments/compose/.env that has it use them.
. "$(dirname "$0")/functions.sh"

kafka=${1:-4.4.0}
"$images/feira/build.sh"
"$images/kafka/build.sh" "$kafka"
"$images/postgres/build.sh"

env=$repository/deployments/compose/.env
touch "$env"
sed -i '/^\(FEIRA\|KAFKA\|POSTGRES\)_IMAGE=/d' "$env" # other settings stay
cat >> "$env" <<EOT
FEIRA_IMAGE=feira:dev
KAFKA_IMAGE=feira-kafka:$kafka
POSTGRES_IMAGE=feira-postgres:$("$images/postgres/build.sh" --major)
EOT
