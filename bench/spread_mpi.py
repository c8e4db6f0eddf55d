"""On the ranks of a launcher, with mpi4py: hbpca and heat's PCA on the same rows, in the same processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from hbpca import PCA
from mpi4py import MPI

from spread import arguments, in_turns, rounds_of, told

comm = MPI.COMM_WORLD


def network() -> None:
    """Seconds of a message without and with numbers: half of there and back."""
    if comm.size < 2:
        return
    seconds = []
    for length, times in ((1, 2000), (1 << 20, 50)):
        numbers = np.zeros(length)
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(times):
            for sender in (0, 1):
                if comm.rank == sender:
                    comm.Send(numbers, 1 - sender)
                elif comm.rank == 1 - sender:
                    comm.Recv(numbers, sender)
        seconds.append((time.perf_counter() - start) / times / 2)
    if comm.rank == 0:
        latency, bandwidth = seconds[0], 8 * (1 << 20) / max(seconds[1] - seconds[0], 1e-9)
        told("network", "", latency, bandwidth, "latency, bytes a second")


def main() -> None:
    given = arguments()
    folder, k, repeat = Path(next(given)), int(next(given)), int(next(given))
    network()
    X = np.load(folder / "x.npy", mmap_mode="r")
    own = np.array(np.array_split(X, comm.size)[comm.rank])
    leading = np.load(folder / "leading.npy")

    def ours():
        pca = PCA(k, comm=comm, threads=1).fit(own)
        return pca.components_, rounds_of(pca)

    peers = {"hbpca": ours}
    try:
        import heat as ht
        import torch

        torch.set_num_threads(1)
        spread = ht.array(torch.from_numpy(own), is_split=0)

        def heat(solver, **more):
            def fit():
                pca = ht.decomposition.PCA(n_components=k, svd_solver=solver, **more)
                pca.fit(spread)
                components = pca.components_
                return components.resplit(None).numpy() if components.split is not None else components.numpy(), solver

            return fit

        peers["heat PCA, full"] = heat("full")
        peers["heat PCA, hierarchical"] = heat("hierarchical")
        peers["heat PCA, randomized"] = heat("randomized", iterated_power=2)
    except ImportError as error:
        if comm.rank == 0:
            told("MPI", "heat PCA", None, None, f"left out, {error}")
    in_turns("MPI", peers, leading, repeat, leads=comm.rank == 0)


if __name__ == "__main__":
    sys.exit(main())
