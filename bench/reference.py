"""The exact answer, and the distance from it."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import svds

from data import Rows, standardised

#: Rows that are turned to f64 at once.
CHUNK = 20_000
#: sin² of the reference's own angle, at most: a hundredth of what is called accurate.
OWN_SINE_SQUARED = 1e-8
#: Eigenvalues err by the square of the residual, and by the other solver's rounding: far below this in f64.
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


def exact(rows: Rows, ks: tuple[int, ...]) -> Reference:
    if hasattr(rows.X, "indptr"):
        return of_sparse(rows.X, ks)
    return of_dense(standardised(rows.X) if rows.raw else rows.X, max(ks))


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


def of_sparse(X: Any, ks: tuple[int, ...]) -> Reference:
    """hbpca's `krylov` far below every tolerance here, held against two things that are not hbpca's: residuals by SciPy's
    products, and the eigenvalues that ARPACK finds (a pair can be exact and yet not be one of the largest)."""
    from hbpca import PCA

    X, most = X.astype(np.float64), max(ks)
    with warnings.catch_warnings():
        # Where 1e-13 is below the rounding of the products hbpca says so; what was reached is measured here.
        warnings.simplefilter("ignore")
        V = PCA(most + 1, center=False, solver="krylov", tol=1e-13).fit(X).components_
    image = X.T @ (X @ V.T)
    values = np.einsum("kd,dk->k", V, image)
    residuals = image - V.T * values
    # Davis and Kahan: sin θ ≤ ‖R‖ / gap, for each k that is asked for.
    sine = max(np.linalg.norm(residuals[:, :k], 2) / (values[k - 1] - values[k]) for k in ks)
    arpack = np.sort(svds(X, k=most + 1, return_singular_vectors=False, rng=0))[::-1] ** 2
    distance = np.abs(arpack - values).max() / values[0]
    if not (sine**2 <= OWN_SINE_SQUARED and distance <= AGREEMENT):
        raise ArithmeticError(
            f"the reference cannot be trusted: sin² of its angle up to {sine**2:.1e} (allowed {OWN_SINE_SQUARED:g}), "
            f"distance to ARPACK's eigenvalues {distance:.1e} (allowed {AGREEMENT:g})"
        )
    proof = f"sin² ≤ {sine**2:.0e} by SciPy's products, {distance:.0e} from ARPACK's eigenvalues"
    return Reference(V[:most].copy(), values, f"krylov at 1e-13 in f64: {proof}")


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
