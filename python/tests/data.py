"""Data with a known spectrum."""

import numpy as np


def with_spectrum(n, d, rank, seed=0, mean=3.0, dtype=np.float64):
    """n×d rows of the given rank about a mean, singular values falling by 0.8 from one to the next."""
    rng = np.random.default_rng(seed)
    rank = min(rank, n - 1, d)
    left = np.linalg.qr(rng.standard_normal((n, rank + 1)) + np.eye(n, rank + 1))[0]
    left -= left.mean(axis=0)  # centred columns, so that the mean takes nothing from the spectrum
    left = np.linalg.qr(left[:, :rank])[0]
    right = np.linalg.qr(rng.standard_normal((d, rank)))[0]
    values = np.sqrt(n) * 0.8 ** np.arange(rank)
    return ((left * values) @ right.T + mean * rng.standard_normal(d)).astype(dtype)


def sparse_counts(n, d, density=0.1, seed=0, dtype=np.float64):
    """Small counts with a popular head, as in text."""
    import scipy.sparse as sp

    rng = np.random.default_rng(seed)
    popularity = 1 / (1 + np.arange(d))
    dense = rng.poisson(density * d * popularity / popularity.sum(), size=(n, d))
    return sp.csr_array(dense.astype(dtype))
