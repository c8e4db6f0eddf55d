"""What the binding adds to the Rust call on a small array, in one run: `python benchmarks/overhead.py`.

The time within Rust is that of the fit itself, as Rust's own clock measures it. All else counts as added: validation of the
input, threads started and ended, the result's arrays. Less than 1 ms is the aim.
"""

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
    verdict = "below" if statistics.median(added) < 1e-3 else "NOT below"
    print(f"{verdict} 1 ms")


if __name__ == "__main__":
    main()
