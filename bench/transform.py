#!/usr/bin/env python3
"""What follows a fit: scores, rows and likelihoods beside scikit-learn's, turn by turn in one process.

    target/bench/python/bin/python bench/transform.py [--rounds 7] [--only dense|sparse]

Needs hbpca and scikit-learn; `bench/run.py` makes an environment with both. `PCA` on dense data, `TruncatedSVD` on sparse,
smallest times in milliseconds; a ratio above 1 means that hbpca is faster, losses are in bold. scikit-learn has the components
of hbpca, so that only the maps differ, but for `fit_transform`, where each fits in its own way. A last table has what
`fit_transform` of hbpca adds to its `fit`, in passes of NumPy: Xᵀ(XV) with as many vectors as there are components.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import hbpca
import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD

#: Seconds: threads of NumPy's BLAS spin for a while after their work, and would take a core from whoever comes next.
PAUSE = 0.15


class Table(NamedTuple):
    name: str
    X: Any
    #: hbpca's estimator and scikit-learn's.
    estimators: tuple[type, type]


def tables(only: str | None) -> Iterator[Table]:
    generator = np.random.default_rng(0)
    if only != "sparse":
        for n, d in ((200_000, 100), (2_000, 10_000)):
            for dtype in (np.float32, np.float64):
                X = generator.standard_normal((n, d), dtype=dtype) * np.linspace(1, 3, d, dtype=dtype)
                yield Table(f"dense {X.dtype}", X, (hbpca.PCA, PCA))
    if only != "dense":
        for n, d, density in ((200_000, 1_000, 0.01), (10_000, 40_000, 0.002)):
            X = sp.random_array((n, d), density=density, rng=generator, format="csr", dtype=np.float32)
            # Words that many texts have come first, as the gap between singular values asks for.
            X = sp.csr_array(X @ sp.diags_array(np.linspace(3, 1, d, dtype=np.float32)))
            X.sort_indices()  # as files are read; products of SciPy leave them in disorder
            yield Table("sparse float32", X, (hbpca.TruncatedSVD, TruncatedSVD))


def smallest(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Milliseconds of each call, taken in turns, so that a busy moment strikes all of them."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            time.sleep(PAUSE)
            begun = time.perf_counter()
            call()
            best[i] = min(best[i], 1e3 * (time.perf_counter() - begun))
    return best


def twin(ours: Any, theirs: type, X: Any, k: int) -> Any:
    """scikit-learn's estimator with the components of `ours`."""
    found = theirs(k)
    found.components_, found.n_features_in_ = ours.components_, X.shape[1]
    if theirs is PCA:
        found.mean_, found.noise_variance_ = ours.mean_.astype(X.dtype), ours.noise_variance_
        found.explained_variance_, found.n_components_ = ours.explained_variance_, k
    return found


def one_pass(X: Any, V: np.ndarray) -> np.ndarray:
    return X.T @ (X @ V)


def label(table: Table) -> str:
    n, d = table.X.shape
    return f"{table.name}, {n:,} × {d:,}"


def row(table: Table, k: int, method: str, calls: list[Callable[[], object]], rounds: int) -> None:
    here, there = smallest(calls, rounds)
    ratio = f"{there / here:.2f}" if there >= here else f"**{there / here:.2f}**"
    print(f"| {label(table)} | {k} | {method} | {here:.1f} | {there:.1f} | {ratio} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="turns of each [7]")
    parser.add_argument("--only", choices=("dense", "sparse"))
    parser.add_argument("--methods", default="transform,inverse_transform,score_samples,fit_transform")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    added = []
    print("| data | k | method | hbpca ms | scikit-learn ms | ratio |\n|---|---|---|---|---|---|")
    for table in tables(args.only):
        for k in (10, 50):
            ours, theirs = table.estimators
            fitted = ours(k).fit(table.X)
            pair = (fitted, twin(fitted, theirs, table.X, k))
            # All rows of sparse data would be dense: a few hundred are what fits.
            scores = fitted.transform(table.X)[: 50_000_000 // table.X.shape[1]]
            # scikit-learn inverts a d×d matrix: not for wide data.
            has_likelihood = theirs is PCA and table.X.shape[1] <= 1_000
            given = {"transform": table.X, "inverse_transform": scores}
            given |= {"score_samples": table.X} if has_likelihood else {}
            for method, X in given.items():
                if method in args.methods:
                    row(table, k, method, [partial(getattr(each, method), X) for each in pair], args.rounds)
            if "fit_transform" in args.methods:
                rounds = max(3, args.rounds // 2)
                fits = [partial(each(k).fit_transform, table.X) for each in table.estimators]
                row(table, k, "fit_transform", fits, rounds)
                V = np.ascontiguousarray(fitted.components_.T)
                ours_alone = [partial(ours(k).fit, table.X), fits[0], partial(one_pass, table.X, V)]
                added.append((label(table), k, *smallest(ours_alone, rounds)))
    if added:
        print("\n| data | k | fit ms | fit_transform ms | a pass ms | added passes |\n|---|---|---|---|---|---|")
    for name, k, fit, both, passing in added:
        print(f"| {name} | {k} | {fit:.1f} | {both:.1f} | {passing:.1f} | {(both - fit) / passing:.2f} |")


if __name__ == "__main__":
    main()
