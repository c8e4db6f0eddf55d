"""What the binding adds to the Rust call on a small array: `python benchmarks/overhead.py`."""

import statistics
import time

import numpy as np

from hbpca import PCA


def main(n=200, d=10, k=3, repeats=300):
    X = np.random.default_rng(0).standard_normal((n, d))
    outside, inside = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        pca = PCA(k).fit(X)
        outside.append(time.perf_counter() - start)
        inside.append(pca._fitted.seconds)
    added = [a - b for a, b in zip(outside, inside)]
    for name, seconds in [("fit from Python", outside), ("within Rust", inside), ("added", added)]:
        print(f"{name:16} median {1e3 * statistics.median(seconds):.3f} ms, best {1e3 * min(seconds):.3f} ms")


if __name__ == "__main__":
    main()
