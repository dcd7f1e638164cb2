#!/usr/bin/env bash
# build.sh [ARCH] [TAG]: the image feira:dev, from a program that this machine's Go compiles. ARCH is amd64 or arm64; for
# another than this machine's, the tag is feira:dev-ARCH.
. "$(dirname "$0")/../functions.sh"
need go "golang (1.26 or newer; https://go.dev/dl)"

own=$(go env GOHOSTARCH)
arch=${1:-$own}
tag=${2:-dev}
if [ "$arch" != "$own" ]; then
  tag=$tag-$arch
  docker buildx version >/dev/null 2>&1 || fail "an image for another machine ($arch) needs BuildKit: install docker-buildx"
fi
version=$(git -C "$repository" describe --tags --always --dirty 2>/dev/null || echo unknown)
revision=$(git -C "$repository" rev-parse --verify -q HEAD 2>/dev/null || echo unknown)

root=$work/feira-$arch
rm -rf "$root"
mkdir -p "$root"
chmod 755 "$root"
"$images/feira/root.sh" "$root" "$arch" "$version" "$revision"

inputs=$({ echo "$arch"; cat "$repository/Dockerfile"; find "$root" -type f | sort | xargs sha256sum; } | sha256sum | cut -c-64)
current "feira:$tag" "$inputs" || build "feira:$tag" "$inputs" "$root" -f "$repository/Dockerfile" --target prebuilt \
  --platform "linux/$arch" --build-arg VERSION="$version" --build-arg REVISION="$revision"
rm -rf "$root"
