"""The exact answer, and the distance from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import svds

from data import Rows, standardised

#: Rows that are turned to f64 at once.
CHUNK = 20_000
#: The angles' sines err by about residual / gap: this far below what is called accurate, gaps down to 1e-5 do no harm.
RESIDUAL = 1e-11
#: Eigenvalues err by the square of that, and by the other solver's own rounding.
AGREEMENT = 1e-9


class Reference(NamedTuple):
    #: k×d, orthonormal.
    components: np.ndarray
    #: Of the top k + 1.
    eigenvalues: np.ndarray
    method: str

    def gap(self, k: int) -> float:
        """λ_{k+1}/λ_k: near 1, the subspace is hardly determined. 0 where k is everything."""
        return float(self.eigenvalues[k] / self.eigenvalues[k - 1]) if k < len(self.eigenvalues) else 0.0


def exact(rows: Rows, k: int) -> Reference:
    if hasattr(rows.X, "indptr"):
        return of_sparse(rows.X, k)
    return of_dense(standardised(rows.X) if rows.raw else rows.X, k)


def of_dense(X: np.ndarray, k: int) -> Reference:
    """Eigenvectors of the covariance, summed in f64."""
    n, d = X.shape
    mean = X.mean(axis=0, dtype=np.float64)
    covariance = np.zeros((d, d))
    for start in range(0, n, CHUNK):
        part = X[start : start + CHUNK].astype(np.float64) - mean
        covariance += part.T @ part
    values, vectors = eigh(covariance / n, subset_by_index=[max(d - k - 1, 0), d - 1])
    return Reference(vectors.T[::-1][:k].copy(), values[::-1], "eigh of the covariance in f64")


def of_sparse(X: Any, k: int) -> Reference:
    """hbpca's `krylov` far below every tolerance here, held against two things that are not hbpca's: residuals by SciPy's
    products, and the eigenvalues that ARPACK finds (a pair can be exact and yet not be one of the largest)."""
    from hbpca import PCA

    X = X.astype(np.float64)
    V = PCA(k + 1, center=False, solver="krylov", tol=1e-13).fit(X).components_
    image = X.T @ (X @ V.T)
    values = np.einsum("kd,dk->k", V, image)
    residual = np.linalg.norm(image - V.T * values, axis=0).max() / values[0]
    arpack = np.sort(svds(X, k=k + 1, return_singular_vectors=False, rng=0))[::-1] ** 2
    distance = np.abs(arpack - values).max() / values[0]
    if residual > RESIDUAL or distance > AGREEMENT:
        raise ArithmeticError(
            f"the reference cannot be trusted: residual {residual:.1e} (at most {RESIDUAL:g}), "
            f"distance to ARPACK's eigenvalues {distance:.1e} (at most {AGREEMENT:g})"
        )
    method = f"krylov at 1e-13; residual by SciPy's products {residual:.0e}, distance to ARPACK's eigenvalues {distance:.0e}"
    return Reference(V[:k].copy(), values, method)


def sine_squared(reference: Reference, components: np.ndarray) -> float:
    """sin² of the largest principal angle, from what the components have outside of the exact subspace: no cancellation."""
    k = len(components)
    if not np.isfinite(components).all():
        return 1.0
    W, triangle = np.linalg.qr(components.T)
    if np.abs(np.diag(triangle)).min() < 0.5:
        # Not even nearly orthonormal: some direction is missing.
        return 1.0
    U = reference.components[:k]
    outside = W - U.T @ (U @ W)
    return float(min(np.linalg.norm(outside, 2) ** 2, 1.0))
