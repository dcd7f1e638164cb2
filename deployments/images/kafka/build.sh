#!/usr/bin/env bash
# build.sh [VERSION]: the image feira-kafka:VERSION, from Kafka's own jars (Maven) and this machine's JDK.
. "$(dirname "$0")/../functions.sh"

version=${1:-4.4.0}
need mvn maven
need jlink openjdk-17-jdk-headless
need busybox busybox-static

here=$images/kafka
jdk=$(dirname "$(dirname "$(readlink -f "$(command -v jlink)")")")
[ -d "$jdk/jmods" ] || fail "$jdk has no jmods, so jlink cannot make a Java runtime of it; on Debian: apt-get install openjdk-17-jdk-headless"

inputs=$({ echo "$version"; cat "$jdk/release" "$images"/*.sh "$(command -v busybox)"; find "$here" -type f | sort | xargs cat; } | sha256sum | cut -c-64)
if current "feira-kafka:$version" "$inputs"; then exit; fi

stage=$work/kafka-$version root=$work/kafka-$version/root
rm -rf "$stage"
mkdir -p "$root/opt/kafka/libs" "$root/opt/kafka/config" "$root/opt/kafka/logs" "$root/var/lib/kafka/data" "$root/mnt/shared/config" "$root/etc/kafka/secrets"
said=$(mvn -q -B -f "$here/pom.xml" -Dkafka.version="$version" dependency:copy-dependencies \
  -DoutputDirectory="$root/opt/kafka/libs" -DincludeScope=runtime) || fail "Kafka's jars are not to be had: $said"

jlink --module-path "$jdk/jmods" --add-modules "$(paste -sd, "$here/modules.txt")" --strip-debug --no-header-files --no-man-pages --output "$root/opt/java"
# The runtime's libraries, but for those that draw, need these; so do the compressors in the jars.
mapfile -t java < <(find "$root/opt/java" \( -name '*.so' -o -path '*/bin/java' \) | grep -vE 'awt|font|freetype|jsound|lcms|mlib|splash')
mapfile -t libraries < <(ldd "${java[@]}" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | grep -v "^$root" | sort -u)
"$images/rootfs.sh" "$root" /bin/bash "${libraries[@]}"

cp -a "$here/rootfs/." "$root/"
while read -r tool classes; do
  for class in $classes; do # some have another name in older versions
    if grep -qF "${class//.//}.class" "$root"/opt/kafka/libs/kafka*.jar; then break; fi
  done
  printf '#!/bin/bash\nexec /opt/kafka/bin/kafka-run-class.sh %s "$@"\n' "$class" > "$root/opt/kafka/bin/$tool.sh"
  chmod 755 "$root/opt/kafka/bin/$tool.sh"
done < "$here/tools.txt"
printf 'root:x:0:0:root:/root:/bin/bash\nappuser:x:1000:1000::/home/appuser:/bin/bash\n' > "$root/etc/passwd"
printf 'root:x:0:\nappuser:x:1000:\n' > "$root/etc/group"
install -d "$root/home/appuser"
cp "$here/Dockerfile" "$stage/"

build "feira-kafka:$version" "$inputs" "$stage" --build-arg VERSION="$version"
rm -rf "$stage"
