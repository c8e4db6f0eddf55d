#!/usr/bin/env bash
# ci/torture.sh [problems [seed]]: as many problems drawn at random, each solved by a solver drawn at random, and every claim
# compared with an answer in twice the working precision. ./test tries a thousand.
set -euo pipefail
cd "$(dirname "$0")/.."
problems=${1:-10000}
seed=${2:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
echo "torture: $problems problems from seed $seed"
HBPCA_TORTURE="$problems $seed" cargo test --locked --release --package hbpca --package same-features --test torture \
    problems_drawn_at_random -- --nocapture --exact
echo "torture: $SECONDS s"
