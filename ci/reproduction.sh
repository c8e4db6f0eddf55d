#!/usr/bin/env bash
# ci/reproduction.sh DATA [OUT]: runs every experiment of the paper and puts page, figures and step sizes into docs/.
set -euo pipefail
cd "$(dirname "$0")/.."
data=$1
out=${2:-target/reproduction}
cargo run --release --locked -- reproduce all --data "$data" -o "$out"
# Figures lie in a folder of their own there, and where data and results lay is nobody's business.
sed -E -e 's#\]\(([a-z0-9-]+\.svg)\)#](figures/\1)#' -e "s#--data $data#--data DATA#" -e "s#-o $out#-o OUT#" \
    "$out/reproduction.md" >docs/reproduction.md
cp "$out"/figure[12]{,-extended,-extended-seconds}.svg "$out"/rates.svg "$out"/study-*.svg "$out"/figure[12]-step-sizes.csv docs/figures/
