#!/usr/bin/env bash
# fuzz targets build
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
CARGO_TARGET_DIR=../target/fuzz cargo check --locked --quiet
