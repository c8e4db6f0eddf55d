"""Small fits against scikit-learn's, and what the binding adds to the Rust call, in one run: `python benchmarks/overhead.py`.

Fits take turns, and medians are compared. The time within Rust is that of the fit itself, as Rust's own clock measures it. All
else counts as added: validation of the input, a thread where one is started, the result's arrays.
"""

import statistics
import time

import numpy as np
from sklearn.decomposition import PCA as Reference

from hbpca import PCA


def seconds(fit, X):
    start = time.perf_counter()
    fitted = fit(X)
    return time.perf_counter() - start, fitted


def compare(n, d, k, repeats):
    X = np.random.default_rng(0).standard_normal((n, d))
    ours, within, theirs = [], [], []
    for _ in range(repeats):
        outside, fitted = seconds(PCA(k).fit, X)
        ours.append(outside)
        within.append(fitted._fitted.seconds)
        theirs.append(seconds(Reference(k).fit, X)[0])
    ours, within, theirs = (1e3 * statistics.median(times) for times in (ours, within, theirs))
    verdict = "no slower" if ours <= theirs else "SLOWER"
    print(f"{n:5} × {d:<3} k = {k}: {ours:.3f} ms ({within:.3f} within Rust), scikit-learn {theirs:.3f} ms: {verdict}")
    return ours <= theirs


def main(repeats=500):
    results = [compare(n, d, k, repeats) for n, d, k in [(100, 5, 2), (200, 10, 3), (1000, 20, 5)]]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
