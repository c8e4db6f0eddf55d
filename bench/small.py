#!/usr/bin/env python3
"""Fits that are over in a millisecond: hbpca beside scikit-learn, turn by turn in one process.

    target/bench/python/bin/python bench/small.py [--rounds 300]

Needs hbpca and scikit-learn; `bench/run.py` makes an environment with both. Medians and smallest times in milliseconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import hbpca
import numpy as np
from sklearn.decomposition import PCA

SIZES = ((100, 5, 5), (1000, 20, 10), (1797, 64, 10), (200_000, 100, 10))


def milliseconds(fit: Callable[[], object]) -> float:
    begun = time.perf_counter()
    fit()
    return 1e3 * (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300, help="turns of each, fewer for large data [300]")
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    generator = np.random.default_rng(0)
    print("| rows × columns, k | fit | median ms | smallest ms |\n|---|---|---|---|")
    for n, d, k in SIZES:
        X = generator.normal(size=(n, d)) * np.linspace(1, 3, d)
        fits = {"hbpca": lambda X=X, k=k: hbpca.PCA(k).fit(X)}
        for solver in ("full", "covariance_eigh", "auto"):
            fits[f"scikit-learn {solver}"] = lambda X=X, k=k, solver=solver: PCA(k, svd_solver=solver).fit(X)
        taken: dict[str, list[float]] = {name: [] for name in fits}
        for _ in range(rounds if n * d < 10**6 else 5):
            for name, fit in fits.items():
                taken[name].append(milliseconds(fit))
        for name, times in taken.items():
            print(f"| {n:,} × {d}, {k} | {name} | {np.median(times):.3f} | {min(times):.3f} |", flush=True)


if __name__ == "__main__":
    main()
