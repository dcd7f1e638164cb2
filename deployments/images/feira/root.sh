#!/usr/bin/env bash
# root.sh DIR ARCH VERSION REVISION: fills DIR with all there is in the image of feira. Runs on a machine with Go and in
# the build stage of the Dockerfile alike.
set -euo pipefail
cd "$(dirname "$0")/../../.."
root=$1 arch=$2 version=$3 revision=$4

certificates=/etc/ssl/certs/ca-certificates.crt
[ -s $certificates ] || { echo "images: $certificates is missing; on Debian: apt-get install ca-certificates" >&2; exit 1; }

mkdir -p "$root/etc/ssl/certs"
build=github.com/feira-shop/feira/shared/telemetry
GOOS=linux GOARCH=$arch CGO_ENABLED=0 go build -trimpath -buildvcs=false \
  -ldflags "-s -w -X $build.version=$version -X $build.revision=$revision" -o "$root/feira" ./cmd/feira
cp -L $certificates "$root/etc/ssl/certs/"
cp LICENSE "$root/"
echo 'feira:x:65532:65532::/:/' > "$root/etc/passwd"
echo 'feira:x:65532:' > "$root/etc/group"
