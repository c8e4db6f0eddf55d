#!/usr/bin/env bash
# [JOBS=N] [HBPCA=PROGRAM] ci/fuzz_run.sh SECONDS [TARGET…]: runs each fuzzer (or the named ones) for so long, N at once, from small valid files
# that the program makes, which is built where none is given; finds stay in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=$1
shift
# Coverage by the compiler's own pass: any toolchain will do.
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table" \
    cargo build --locked --quiet --release --target x86_64-unknown-linux-gnu
[ -n "${HBPCA:-}" ] || (cd .. && cargo build --locked --quiet --workspace --bin hbpca)
hbpca=${HBPCA:-$PWD/../target/debug/hbpca}
programs=target/x86_64-unknown-linux-gnu/release

# Small valid files save a fuzzer from finding the formats by itself: eight rows of three columns, those of the targets.
seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
printf '%s\n' a,b,c 2,1,0.5 -2,-1,0.25 0.1,-0.2,1 -0.1,0.2,-1 3,0,0 0,3,0 0,0,3 1,1,1 >"$seeds/rows.csv"
for extension in tsv npy npz libsvm mtx parquet; do
    "$hbpca" convert "$seeds/rows.csv" "$seeds/rows.$extension" >/dev/null
    mkdir -p "corpus/$extension" && cp "$seeds/rows.$extension" "corpus/$extension/"
done
for text in csv tsv libsvm mtx; do
    mkdir -p "corpus/$text" && gzip -kc "$seeds/rows.${text}" >"corpus/$text/rows.gz"
done
cp "$seeds/rows.csv" corpus/csv/
mkdir -p corpus/idx corpus/manifest corpus/model corpus/checkpoint corpus/arguments corpus/bed
printf '\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\x06' >corpus/idx/rows
"$hbpca" convert "$seeds/rows.csv" "$seeds/rows.chunks" >/dev/null && cp "$seeds/rows.chunks/manifest.json" corpus/manifest/
for solver in krylov covariance anchored power vr-hb-power; do
    components=$([[ $solver == power || $solver == vr-hb-power ]] && echo 1 || echo 2)
    "$hbpca" fit -q "$seeds/rows.csv" -k "$components" --solver "$solver" -o "$seeds/$solver.hbpca" || true
    cp "$seeds/$solver.hbpca" corpus/model/ || true
    "$hbpca" fit -q "$seeds/rows.csv" -k "$components" --solver "$solver" --epoch 2 --tol 1e-14 --max-passes 2 \
        --checkpoint "$seeds/$solver.state" || true
    # The target adds the eight bytes of the checksum itself.
    [ -e "$seeds/$solver.state" ] && head -c -8 "$seeds/$solver.state" >"corpus/checkpoint/$solver"
done
mkdir -p corpus/h5ad && cp ../crates/hbpca-io/tests/fixtures/h5ad/*.h5ad corpus/h5ad/
printf 'fit\nrows.csv\n-k\n2\n--tol\n1e-6' >corpus/arguments/fit
printf '\x20\x12%s%s\x6c\x1b\x01\xe4' $'1 a 0 1 A C\n1 b 0 2 G T\n        ' $'f s 0 0 0 -9\nf t' >corpus/bed/short

# By the clock: with more fuzzers than processors an input waits.
fuzz() {
    mkdir -p "artifacts/$1" "corpus/$1"
    local word=nothing
    "$programs/$1" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=100 -print_final_stats=1 \
        -artifact_prefix="artifacts/$1/" "corpus/$1" >"artifacts/$1.log" 2>&1 || word=FOUND
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "artifacts/$1.log")
    echo "$1: $word found in ${runs:-?} runs, $SECONDS s"
    [ "$word" = nothing ]
}
export -f fuzz
export programs seconds
[ $# -gt 0 ] || set -- arguments bed checkpoint csv h5ad idx libsvm manifest model mtx npy npz parquet tsv
printf '%s\n' "$@" | xargs -P "${JOBS:-1}" -I '{}' bash -c 'fuzz {}'
