#!/usr/bin/env python3
"""Rows on several ranks and on a cluster: what spreading them costs, and what others take for the same.

    python3 bench/distributed.py [--rows 200000] [--columns 400] [-k 10] [--mpiexec PATH] [--repeat 3]

1. `mpiexec -n 2 hbpca --threads 1` against one process with two threads: the same cores, so that the ratio is what ranks cost.
2. A Dask cluster of two worker processes: hbpca against dask-ml's PCA and `svd_compressed` on the same persisted array, with
   the largest principal angle to an exact answer. Peers that cannot be imported are left out with a word.

Needs NumPy and the release binary; the second part runs in an environment with hbpca and Dask.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# This file has the name of a package that Dask imports.
sys.path = [path for path in sys.path if Path(path or ".").resolve() != ROOT / "bench"]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BINARY = TARGET / "release" / "hbpca"


def generated(rows: int, columns: int) -> np.ndarray:
    """Standard deviations that fall by 3 % from column to column, rotated, with means of 5."""
    generator = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(generator.normal(size=(columns, columns)))
    return generator.normal(size=(rows, columns)) * 0.97 ** np.arange(columns) @ rotation + 5


def sine(V: np.ndarray, exact: np.ndarray) -> float:
    """Of the largest angle between two spaces, rows orthonormal."""
    V, _ = np.linalg.qr(np.asarray(V, dtype=float).T)
    return float(np.linalg.norm(V - exact.T @ (exact @ V), 2))


def ranks(options: argparse.Namespace, X: np.ndarray, folder: Path) -> None:
    mpiexec = options.mpiexec or shutil.which("mpiexec") or TARGET / "mpi" / "mpich" / "bin" / "mpiexec"
    if not Path(mpiexec).exists() or not BINARY.exists():
        print(f"ranks: left out, {'no mpiexec' if BINARY.exists() else f'no {BINARY}'}")
        return
    path = folder / "x.npy"
    np.save(path, X)
    environment = {**os.environ, "PATH": f"{Path(mpiexec).parent}:{os.environ['PATH']}"}
    print(f"{'solver':12} {'1 process × 2 threads':>22} {'2 ranks × 1 thread':>19} {'ratio':>6}")
    for solver in ("krylov", "covariance", "anchored"):
        fit = [str(BINARY), "fit", str(path), "-k", str(options.k), "--solver", solver, "--json", "-q", "--threads"]
        commands = {"alone": [*fit, "2"], "ranks": [str(mpiexec), "-n", "2", *fit, "1"]}
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.repeat):
            for name, command in commands.items():
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                seconds[name].append(json.loads(done.stdout)["seconds"])
        alone, ranked = min(seconds["alone"]), min(seconds["ranks"])
        print(f"{solver:12} {alone:20.3f} s {ranked:17.3f} s {ranked / alone:6.2f}", flush=True)


def cluster(options: argparse.Namespace, X: np.ndarray) -> None:
    try:
        import dask.array as da
        from dask.distributed import Client, LocalCluster
        from hbpca import PCA
    except ImportError as error:
        print(f"Dask: left out, {error}")
        return
    _, exact = np.linalg.eigh(np.cov(X.T))
    exact = exact[:, ::-1][:, : options.k].T

    def ours(lazy):
        pca = PCA(options.k).fit(lazy)
        return pca.components_, f"{pca.solver_}, {pca.n_passes_ + 1:.0f} rounds, certified"

    def compressed(lazy):
        centred = lazy - lazy.mean(axis=0)
        _, _, V = da.linalg.svd_compressed(centred, options.k, n_power_iter=2, seed=0)
        return V.compute(), "2 power iterations"

    def dask_ml(solver):
        def fit(lazy):
            from dask_ml.decomposition import PCA as DaskPCA

            return DaskPCA(options.k, svd_solver=solver).fit(lazy).components_, solver

        return fit

    peers = {
        "hbpca": ours,
        "dask svd_compressed": compressed,
        "dask-ml full": dask_ml("full"),
        "dask-ml randomized": dask_ml("randomized"),
    }
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers, Client(workers):
        lazy = da.from_array(X, chunks=(len(X) // 8, X.shape[1])).persist()
        print(f"{'on Dask':20} {'seconds':>9} {'sine':>9}  remarks")
        for name, fit in peers.items():
            try:
                times = []
                for _ in range(options.repeat):
                    start = time.perf_counter()
                    components, remark = fit(lazy)
                    times.append(time.perf_counter() - start)
                print(f"{name:20} {min(times):9.3f} {sine(components, exact):9.1e}  {remark}", flush=True)
            except Exception as error:
                print(f"{name:20} {'–':>9} {'–':>9}  {type(error).__name__}: {str(error)[:80]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=400)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--mpiexec")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    X = generated(options.rows, options.columns)
    print(f"{options.rows} × {options.columns}, k = {options.k}, the fastest of {options.repeat}")
    with tempfile.TemporaryDirectory() as folder:
        ranks(options, X, Path(folder))
    cluster(options, X)


if __name__ == "__main__":
    main()
