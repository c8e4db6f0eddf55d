#!/usr/bin/env bash
# fuzz targets compile
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
if ! command -v c++ >/dev/null; then
    echo "skipped: the fuzzer's runtime needs a C++ compiler, and there is no c++"
    exit 77
fi
# The workspace's own folder, where the dependencies have been checked already.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-../target} cargo check --locked --quiet
