"""On a Dask cluster of two worker processes: hbpca, dask-ml and `svd_compressed` on the same persisted array."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def main() -> None:
    from spread import ROOT, arguments, in_turns, rounds_of

    # The folder has a file with the name of a package that Dask imports; worker processes import this one by its path.
    sys.path = [path for path in sys.path if Path(path or ".").resolve() != ROOT / "bench"]
    import dask.array as da
    from dask.distributed import Client, LocalCluster
    from hbpca import PCA

    given = arguments()
    folder, k, repeat = Path(next(given)), int(next(given)), int(next(given))
    X, leading = np.load(folder / "x.npy"), np.load(folder / "leading.npy")

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as workers, Client(workers):
        lazy = da.from_array(X, chunks=(-(-len(X) // 4), X.shape[1])).persist()

        def ours():
            pca = PCA(k).fit(lazy)
            return pca.components_, rounds_of(pca)

        def compressed(iterations):
            def fit():
                centred = lazy - lazy.mean(axis=0)
                _, _, V = da.linalg.svd_compressed(centred, k, n_power_iter=iterations, seed=0)
                return V.compute(), f"{iterations} power iterations"

            return fit

        def dask_ml(solver):
            def fit():
                from dask_ml.decomposition import PCA as DaskPCA

                return DaskPCA(k, svd_solver=solver).fit(lazy).components_, solver

            return fit

        peers = {
            "hbpca": ours,
            "dask svd_compressed, 2": compressed(2),
            "dask svd_compressed, 10": compressed(10),
            "dask-ml PCA, full": dask_ml("full"),
            "dask-ml PCA, randomized": dask_ml("randomized"),
        }
        in_turns("Dask", peers, leading, repeat)


if __name__ == "__main__":
    main()
