# What the build scripts share; they source it.
set -euo pipefail

images=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$images/../.." && pwd)
work=$repository/bin/images # git-ignored

fail() { echo "images: $*" >&2; exit 1; }

need() { # COMMAND PACKAGE: says by name what is missing, and installs nothing
  command -v "$1" >/dev/null || fail "$1 is missing; on Debian: apt-get install $2"
}

# current IMAGE INPUTS: whether the image exists and was built from these inputs, so that there is nothing to do.
current() {
  [ "$(docker image inspect -f '{{index .Config.Labels "shop.feira.inputs"}}' "$1" 2>/dev/null)" = "$2" ] || return 1
  echo "images: $1 is as it must be"
}

# build IMAGE INPUTS FOLDER OPTION…
build() {
  local image=$1 inputs=$2 folder=$3 said
  shift 3
  said=$(docker build -t "$image" --label "shop.feira.inputs=$inputs" "$@" "$folder" 2>&1) || fail "$image: $said"
  echo "images: $image, $(docker image inspect -f '{{.Size}}' "$image" | awk '{printf "%d MB", $1 / 1e6}'), in $SECONDS s"
}

docker version >/dev/null 2>&1 || fail "no Docker engine answers: start it (dockerd), or set DOCKER_HOST"
