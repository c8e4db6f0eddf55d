"""Scores and rows against scikit-learn's, in one run: `python benchmarks/scores.py [DATA]`.

Without a file: random rows of covtype's shape, and sparse ones like text.
"""

import sys
import time
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA as Reference

from hbpca import PCA, read


def best_of_interleaved(calls, repeats=7):
    """The shortest time of each call, taken in turns, so that a busy moment strikes all of them."""
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def compare(name, X, k):
    ours = PCA(k).fit(X)
    # The same components, so that only the products differ.
    reference = Reference(k)
    reference.mean_, reference.components_ = ours.mean_.astype(X.dtype), ours.components_
    reference.explained_variance_, reference.n_features_in_ = ours.explained_variance_, X.shape[1]
    scores = ours.transform(X)
    # Rows of sparse data would be dense: nobody asks for all of them.
    for method, given in [("transform", X)] + [("inverse_transform", scores)] * isinstance(X, np.ndarray):
        calls = [partial(getattr(estimator, method), given) for estimator in (ours, reference)]
        here, there = best_of_interleaved(calls)
        print(f"{name}, k = {k}, {method:17} {1e3 * here:7.1f} ms, scikit-learn {1e3 * there:7.1f} ms: {there / here:.1f}×")


def main():
    rng = np.random.default_rng(0)
    if len(sys.argv) > 1:
        given = read(sys.argv[1], label_column=-1 if ".csv" in sys.argv[1] else None).X
        compare(sys.argv[1], given, 10)
        return
    for dtype in (np.float32, np.float64):
        compare(f"dense {np.dtype(dtype).name}", rng.standard_normal((581_012, 54), dtype=dtype), 10)
    text = sp.random_array((20_000, 30_000), density=0.003, rng=rng, format="csr")
    compare("sparse float64", text, 10)


if __name__ == "__main__":
    main()
