#!/usr/bin/env python3
"""Where passes are dear: rows that come at a given speed, solver by solver.

    target/bench/python/bin/python bench/slow_disk.py [--rates 50M,200M,1G] [-k 10] [--tol 1e-6] [--limit 300] [--only NAMES]

Chunks of rows are handed out no faster than a disk of that speed would, whatever else is slow comes on top; what is read
ahead on another thread overlaps with the arithmetic, as it does with files. `disk_rate` tells `auto` the speed. Data:
20,000 generated rows of 4,000 columns whose eigenvalues fall slowly, and 800,000 compressed rows of 20,000 columns. Times are
those of one fit each.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any

import hbpca
import numpy as np
import scipy.sparse as sp

#: Less than the rows take.
MEMORY = 250_000_000
UNITS = {"K": 1e3, "M": 1e6, "G": 1e9}
SOLVERS = ("auto", "krylov", "anchored", "covariance")


class Throttled:
    """Chunks of rows at so many bytes a second."""

    def __init__(self, X: Any, rate: float, chunks: int = 16):
        self.X, self.rate = X, rate
        self.cuts = np.linspace(0, X.shape[0], chunks + 1).astype(int)

    def __iter__(self) -> Iterator[Any]:
        due = time.perf_counter()
        for start, end in zip(self.cuts[:-1], self.cuts[1:]):
            rows = self.X[start:end]
            due = max(due, time.perf_counter() - 0.05) + size(rows) / self.rate
            time.sleep(max(0.0, due - time.perf_counter()))
            yield rows


def size(X: Any) -> int:
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def tables() -> Iterator[tuple[str, Any]]:
    """Names and rows."""
    rng = np.random.default_rng(0)
    deviation = (1 + np.arange(4000)) ** -0.4
    yield "dense", (rng.standard_normal((20_000, 4000)) * deviation).astype(np.float32)
    n, d, entries = 800_000, 20_000, 60
    # Zipf's law, as words have it; some kinds of rows prefer some columns.
    kind = np.repeat(rng.integers(0, 40, n), entries)
    column = (d ** rng.random(n * entries)).astype(int) - 1
    column = (column + kind * 7 * (column % 3 == 0)) % d
    counts = sp.csr_matrix((np.ones(n * entries, dtype=np.float32), (np.repeat(np.arange(n), entries), column)), (n, d))
    counts.sum_duplicates()
    yield "compressed", counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rates", default="50M,200M,1G", help="bytes a second [50M,200M,1G]")
    parser.add_argument("-k", type=int, default=10, help="components [10]")
    parser.add_argument("--tol", type=float, default=1e-6, help="[1e-6]")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one fit [300]")
    parser.add_argument("--only", help="names of data, separated by commas")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | MB a pass | bytes a second | solver | passes | seconds | of the best |")
    print("|---|---|---|---|---|---|---|")
    for name, X in tables():
        if options.only and name not in options.only.split(","):
            continue
        for text in options.rates.split(","):
            rate = float(text[:-1]) * UNITS[text[-1]]
            rows = []
            for solver in SOLVERS:
                pca = hbpca.PCA(
                    options.k,
                    solver=solver,
                    tol=options.tol,
                    memory_limit=MEMORY,
                    disk_rate=rate,
                    max_seconds=options.limit,
                    random_state=0,
                )
                begun = time.perf_counter()
                try:
                    pca.fit(Throttled(X, rate))
                except (MemoryError, ValueError) as error:
                    print(f"| {name} | {size(X) / 1e6:.0f} | {text} | {solver} | | {error} | |", flush=True)
                    continue
                seconds = time.perf_counter() - begun
                label = f"auto: {pca.solver_}" if solver == "auto" else solver
                label += "" if pca.outcome_ == "converged" else f", {pca.outcome_}"
                rows.append((label, pca.n_passes_, seconds))
            best = min((seconds for label, _, seconds in rows if ", " not in label), default=float("nan"))
            for label, passes, seconds in rows:
                megabytes, ratio = size(X) / 1e6, seconds / best
                line = f"| {name} | {megabytes:.0f} | {text} | {label} | {passes:.1f} | {seconds:.2f} | {ratio:.2f} |"
                print(line, flush=True)


if __name__ == "__main__":
    main()
