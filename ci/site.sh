#!/usr/bin/env bash
# The documentation as a site, under target/site: fails on a broken link
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "skipped: there is no Python"; exit 77; }
environment=target/site-environment
if ! "$environment/bin/python" -c 'import mkdocs' 2>/dev/null; then
    python3 -m venv --clear "$environment"
    "$environment/bin/python" -m pip install -q --disable-pip-version-check 'mkdocs>=1.6,<2' || {
        echo "skipped: mkdocs could not be installed"
        exit 77
    }
fi
"$environment/bin/python" -m mkdocs build --strict --quiet
