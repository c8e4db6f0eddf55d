#!/usr/bin/env bash
# The tests of the kernels under valgrind: reads and writes outside of what was allocated, and decisions on numbers that were never written.
# valgrind knows AVX2 and no AVX-512; the shapes of AVX-512 kernels run in plain arrays (level `Wide`).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || {
    echo "skipped: valgrind is not installed"
    exit 77
}
tests=$(cargo test --locked --package hbpca --package same-features --lib --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*\/hbpca-[0-9a-f]*\)".*/\1/p')
valgrind --error-exitcode=9 --errors-for-leak-kinds=definite --leak-check=full --num-callers=30 \
    "$tests" kernels:: --test-threads=1
echo "valgrind: $SECONDS s"
