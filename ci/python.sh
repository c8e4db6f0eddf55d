#!/usr/bin/env bash
# Python tests
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v python3 >/dev/null; then
    echo "skipped: there is no python3; install Python 3.10 or newer"
    exit 0
fi
python3 python/run_tests.py
