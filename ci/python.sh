#!/usr/bin/env bash
# Python tests; --prepare only makes the environments they need
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "skipped: there is no Python 3.10 or newer"
    exit 77
fi
python3 python/run_tests.py "$@"
