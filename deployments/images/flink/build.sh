#!/usr/bin/env bash
# build.sh: the image feira-flink:VERSION, from Flink's jars (Maven), RunSql and this machine's JDK.
. "$(dirname "$0")/../functions.sh"

need mvn maven
need javac openjdk-17-jdk-headless
need jlink openjdk-17-jdk-headless
need busybox busybox-static

here=$images/flink flink=$repository/deployments/flink
version=$(sed -n 's:.*<flink.version>\(.*\)</flink.version>.*:\1:p' "$flink/pom.xml")
jdk=$(dirname "$(dirname "$(readlink -f "$(command -v jlink)")")")
[ -d "$jdk/jmods" ] || fail "$jdk has no jmods, so jlink cannot make a Java runtime of it; on Debian: apt-get install openjdk-17-jdk-headless"

inputs=$({ cat "$jdk/release" "$images"/*.sh "$(command -v busybox)"; find "$here" "$flink" -type f -not -name '*.md' -not -name '*_test.go' | sort | xargs cat; } | sha256sum | cut -c-64)
if current "feira-flink:$version" "$inputs"; then exit; fi

"$flink/fetch.sh" "$repository/bin/flink"
stage=$work/flink root=$work/flink/root
rm -rf "$stage"
mkdir -p "$root/opt/flink" "$root/var/lib/flink" "$root/etc"
cp -r "$repository/bin/flink/libs" "$flink/conf" "$root/opt/flink/"
cp "$flink"/*.sql "$root/opt/flink/"

jlink --module-path "$jdk/jmods" --add-modules "$(paste -sd, "$here/modules.txt")" --strip-debug --no-header-files --no-man-pages --output "$root/opt/java"
# The runtime's libraries, but for those that draw, need these.
mapfile -t java < <(find "$root/opt/java" \( -name '*.so' -o -path '*/bin/java' \) | grep -vE 'awt|font|freetype|jsound|lcms|mlib|splash')
mapfile -t libraries < <(ldd "${java[@]}" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | grep -v "^$root" | sort -u)
"$images/rootfs.sh" "$root" /bin/bash "${libraries[@]}"
printf 'root:x:0:0:root:/root:/bin/sh\nflink:x:9999:9999::/var/lib/flink:/bin/sh\n' > "$root/etc/passwd"
printf 'root:x:0:\nflink:x:9999:\n' > "$root/etc/group"
cp "$here/Dockerfile" "$stage/"

build "feira-flink:$version" "$inputs" "$stage" --build-arg VERSION="$version"
rm -rf "$stage"
