#!/usr/bin/env bash
# ci/campaign.sh [cases [seed]]: every property test on new cases, many more than ./test tries; and seeded mutations of data
# files, models, checkpoints and manifests: 25 kinds of files, so that 40000 cases are a million of them.
set -euo pipefail
cd "$(dirname "$0")/.."
cases=${1:-5000}
seed=${2:-$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')}
echo "campaign: $cases cases of each property from seed $seed"
# Values that are thrown away may grow in number with the cases: proptest counts them over all of a test.
export PROPTEST_CASES=$cases PROPTEST_RNG_SEED=$seed
export PROPTEST_MAX_GLOBAL_REJECTS=$cases PROPTEST_MAX_LOCAL_REJECTS=$((1000 * cases))
found=0
cargo test --locked --no-fail-fast --package hbpca --package hbpca-io --lib --test properties --test round_trips --test hostile --test hostile_models ||
    found=1
ci/python.sh -m hypothesis --hypothesis-profile=campaign --hypothesis-seed="$seed" || [ $? = 77 ] || found=1

if [ "$found" = 1 ]; then
    cat <<TEXT
FOUND something; the smallest case is printed above, and ci/campaign.sh $cases $seed finds it again.
1. Make that case a test of its own, next to the property. It must fail.
2. Repair the code, or the property if it claims too much, and say which in the commit.
3. Commit the line that proptest has added to a file named *regressions*: ./test tries it first from now on.
TEXT
    exit 1
fi
echo "campaign: nothing found in $cases cases of each property from seed $seed, $SECONDS s"
