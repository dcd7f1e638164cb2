#!/usr/bin/env bash
# Trains the model in a Python environment of its own: train.sh features.csv labels.csv model.json [more options of
# train.py]. Needs python3 with venv, 3.11 or newer, and a package index.
set -euo pipefail
cd "$(dirname "$0")"
[ $# -ge 3 ] || { echo "usage: $0 FEATURES LABELS OUT [OPTION…]; the files as full paths" >&2; exit 2; }
env=$(mktemp -d)
trap 'rm -rf "$env"' EXIT
python3 -m venv "$env"
"$env/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt
"$env/bin/python" train.py --features "$1" --labels "$2" --out "$3" "${@:4}"
