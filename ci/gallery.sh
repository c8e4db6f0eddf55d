#!/usr/bin/env bash
# Draws the pictures and the page of docs/gallery.md anew, with the program that cargo has built
set -euo pipefail
cd "$(dirname "$0")/.."
hbpca=$PWD/${CARGO_TARGET_DIR:-target}/debug/hbpca
out=$PWD/docs/gallery
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
cd "$work"
"$hbpca" sample digits.csv
"$hbpca" fit digits.csv --label-column digit -k 10 --solver krylov -q -o digits.safetensors --report digits.html
"$hbpca" plot digits.safetensors -o scree.svg
"$hbpca" plot digits.safetensors --kind loadings -o loadings.svg
"$hbpca" plot digits.safetensors --kind convergence -o convergence.svg
"$hbpca" plot digits.safetensors digits.csv --color digit -o scores.png
"$hbpca" plot digits.safetensors digits.csv --kind biplot -o biplot.png
cp digits.html scree.svg loadings.svg convergence.svg scores.png biplot.png "$out"
