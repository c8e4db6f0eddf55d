#!/usr/bin/env bash
# The library compiles with the oldest Rust that Cargo.toml promises
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || { echo "Cargo.toml names no rust-version" >&2; exit 1; }
# A complete version, or the name that stands for its newest release.
installed=$(rustup toolchain list 2>/dev/null || true)
toolchain=$(grep -oE "^${version//./\\.}(\.[0-9]+)?-[^ ]+" <<<"$installed" | head -n 1 || true)
if [ -z "$toolchain" ]; then
    echo "skipped: Rust $version is not installed; rustup toolchain install $version --profile minimal"
    exit 77
fi
cargo "+$toolchain" build --package hbpca --lib --locked
