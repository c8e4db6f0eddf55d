#!/usr/bin/env bash
# Browser test of the reports; --prepare only installs what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "skipped: $*"; exit 77; }

command -v node >/dev/null && command -v npm >/dev/null || skip "there is no Node.js with npm"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update && apt-get install -y chromium; } >/dev/null 2>&1 || true
    browser=$(command -v chromium || true)
fi
[ -n "$browser" ] || skip "there is no Chromium and no right to install one"

work=target/browser
mkdir -p "$work"
modules=crates/hbpca-lab/tests/browser
if [ ! -d "$modules/node_modules" ] || ! cmp --silent "$modules/package-lock.json" "$work/installed.json"; then
    (cd "$modules" && npm ci --silent --no-audit --no-fund) || {
        # Only a registry out of reach is no fault of what is tested.
        ! npm ping >/dev/null 2>&1 || exit 1
        skip "the npm registry does not answer"
    }
    cp "$modules/package-lock.json" "$work/installed.json"
fi
[ "${1:-}" != --prepare ] || exit 0
# Generated data, so that the test needs no download.
python3 - "$work/data.csv" <<'PY'
import random, sys
random.seed(1)
with open(sys.argv[1], "w") as out:
    out.write(",".join(f"c{j}" for j in range(6)) + "\n")
    for _ in range(2000):
        out.write(",".join(f"{random.gauss(0, 6 - j):.5f}" for j in range(6)) + "\n")
PY
# The binary that the Rust tests have built: on its own, the package would have other features and be built anew.
cargo test --workspace --locked --no-run --quiet
hbpca=${CARGO_TARGET_DIR:-target}/debug/hbpca
"$hbpca" compare "$work/data.csv" --seeds 2 --passes 8 --study --quiet -o "$work/report.html"
rm -f "$work/digits.csv"
"$hbpca" sample digits.csv -o "$work/digits.csv"
"$hbpca" fit "$work/digits.csv" --label-column digit -k 10 --solver krylov --quiet --report "$work/model.html" >/dev/null
status=0
for page in report model; do
    code=0
    node "$modules/$page.mjs" "$work/$page.html" || code=$?
    [ "$code" != 77 ] || skip "the browser does not start"
    [ "$code" = 0 ] || status=$code
done
exit "$status"
