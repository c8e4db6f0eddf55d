"""Ranks that are threads, with messages that take 10 ms: how much of the time of a fit is rounds × messages × delay."""

from __future__ import annotations

import queue
import threading
import time

import numpy as np
from hbpca import PCA

from spread import generated

DELAY = 0.01


class Waiting:
    """A rank whose messages arrive `DELAY` seconds after they were sent."""

    def __init__(self, rank, mail):
        self.rank, self.mail, self.rounds = rank, mail, 0

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return len(self.mail)

    def Send(self, buffer, dest):
        self.mail[dest][self.rank].put((time.perf_counter() + DELAY, np.array(buffer)))

    def Recv(self, buffer, source):
        arrives, values = self.mail[self.rank][source].get(timeout=60)
        time.sleep(max(0.0, arrives - time.perf_counter()))
        self.rounds += self.rank == 0 and source == 1
        buffer[:] = values

    def Bcast(self, buffer, root):
        # Down the binomial tree.
        size = self.Get_size()
        place = (self.rank - root) % size
        step = 1
        while step < size and not place & step:
            step <<= 1
        if place:
            self.Recv(buffer, (place - step + root) % size)
        while step > 1:
            step >>= 1
            if place + step < size:
                self.Send(buffer, (place + step + root) % size)


def fitted(size, X, solver):
    """Rank 0's estimator, its rounds, and the seconds."""
    mail = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    ranks, found = [Waiting(rank, mail) for rank in range(size)], [None] * size

    def run(rank):
        own = np.array_split(X, size)[rank]
        found[rank] = PCA(10, solver=solver, comm=ranks[rank], threads=1).fit(own)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found[0], ranks[0].rounds, time.perf_counter() - start


def main() -> None:
    X = generated(4000, 100)
    print(f"\ndelay of {1000 * DELAY:.0f} ms, 4000 × 100, k = 10")
    print(f"{'solver':12} {'ranks':>5} {'rounds':>7} {'rounds × messages × delay':>26} {'taken':>8} {'explained':>10}")
    taken = {}
    for size in (2, 4):
        for solver in ("covariance", "krylov", "anchored"):
            pca, rounds, seconds = fitted(size, X, solver)
            assert pca.outcome_ == "converged"
            explained = rounds * 2 * int(np.log2(size)) * DELAY
            share = explained / seconds
            taken[solver, size] = rounds, seconds
            print(f"{solver:12} {size:5} {rounds:7} {explained:24.2f} s {seconds:6.2f} s {share:9.0%}", flush=True)
        for one, other in (("krylov", "covariance"), ("krylov", "anchored")):
            (rounds, seconds), (fewer, less) = taken[one, size], taken[other, size]
            ratios = f"{rounds / fewer:.2f} × the rounds, {seconds / less:.2f} × the time"
            print(f"{one} against {other} on {size} ranks: {ratios}")


if __name__ == "__main__":
    main()
