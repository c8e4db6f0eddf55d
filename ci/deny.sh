#!/usr/bin/env bash
# Licences, bans and sources of all dependencies, as deny.toml has them
set -euo pipefail
cd "$(dirname "$0")/.."
command -v cargo-deny >/dev/null || {
    echo "skipped: cargo-deny is not installed; cargo install cargo-deny --locked"
    exit 77
}
cargo deny --offline check bans licenses sources
