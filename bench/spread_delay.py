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
    repeat = 3
    print(f"\ndelay of {1000 * DELAY:.0f} ms, 4000 × 100, k = 10, the fastest of {repeat}")
    print(f"{'solver':12} {'ranks':>5} {'rounds':>7} {'rounds × messages × delay':>26} {'taken':>8} {'explained':>10}")
    for size in (2, 4):
        taken = {solver: (0, np.inf) for solver in ("covariance", "krylov", "anchored")}
        for _ in range(repeat):
            for solver, (_, least) in taken.items():
                pca, rounds, seconds = fitted(size, X, solver)
                assert pca.outcome_ == "converged"
                taken[solver] = rounds, min(seconds, least)
        for solver, (rounds, seconds) in taken.items():
            explained = rounds * 2 * int(np.log2(size)) * DELAY
            print(
                f"{solver:12} {size:5} {rounds:7} {explained:24.2f} s {seconds:6.2f} s {explained / seconds:9.0%}", flush=True
            )
        for one, other in (("krylov", "covariance"), ("krylov", "anchored")):
            (rounds, seconds), (fewer, less) = taken[one], taken[other]
            ratios = f"{rounds / fewer:.2f} × the rounds, {seconds / less:.2f} × the time"
            print(f"{one} against {other} on {size} ranks: {ratios}")


if __name__ == "__main__":
    main()
