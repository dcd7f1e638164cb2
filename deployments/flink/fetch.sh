#!/usr/bin/env bash
# fetch.sh FOLDER: Flink's jars from Maven Central and RunSql, compiled, in FOLDER/libs. What is there stays.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?the folder for the jars}

for command in mvn javac jar; do
  command -v "$command" >/dev/null || { echo "fetch.sh: $command is missing; on Debian: apt-get install maven default-jdk-headless" >&2; exit 1; }
done

# once NAME COMMAND…: runs the command unless it ran before on the same inputs, which come on standard input.
once() {
  local stamp=$folder/$1.inputs inputs
  inputs=$(sha256sum)
  shift
  [ "$(cat "$stamp" 2>/dev/null)" != "$inputs" ] || return 0
  "$@"
  echo "$inputs" > "$stamp"
}

jars() {
  rm -rf "$folder/libs" "$folder"/*.inputs
  local said
  said=$(mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/libs" -DincludeScope=runtime) ||
    { echo "fetch.sh: Flink's jars are not to be had: $said" >&2; exit 1; }
}

compiled() {
  find "$here/src" -name '*.java' -print0 | xargs -0 javac --release 17 -Xlint:all,-serial,-classfile -Werror -d "$folder/classes" -cp "$folder/libs/*"
  jar --create --file "$folder/libs/feira-flink.jar" -C "$folder/classes" .
  rm -rf "$folder/classes"
}

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
once jars jars < "$here/pom.xml"
once classes compiled < <(javac -version 2>&1; find "$here/src" -name '*.java' | sort | xargs cat "$here/pom.xml")
