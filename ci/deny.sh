#!/usr/bin/env bash
# Licences, bans and sources of all dependencies, as deny.toml has them; known faults of them where the database can be reached
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-deny >/dev/null || {
    echo "skipped: cargo-deny is not installed; cargo install cargo-deny --locked"
    exit 77
}
cargo deny --offline check bans licenses sources
if timeout 120 cargo deny fetch db >/dev/null 2>&1; then
    cargo deny check advisories
else
    echo "advisories were not checked: their database cannot be reached"
fi
