"""What LAPACK finds of the whole matrix, against a fit and its certificate."""

import numpy as np


def rows(n=2003, d=14):
    """Standard deviations that fall by a fifth from column to column, about means of 100."""
    return np.random.default_rng(1).normal(size=(n, d)) * 0.8 ** np.arange(d) + 100


def hold(pca, X):
    """Every claim of the certificate, and that of convergence, is true of X; `X` is dense, in float64."""
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    k = pca.n_components_
    values, vectors = values[::-1], vectors[:, ::-1][:, :k]
    # eigh of C errs by a few ε‖C‖, C itself by more where means are large.
    spread = 1e-13 * values[0] * (1 + np.abs(X).max() ** 2 / values[0]) ** 0.5
    certificate = pca.certificate_
    assert pca.outcome_ == "converged" and pca.n_samples_ == len(X), pca.outcome_
    for (low, high), exact in zip(certificate.eigenvalue_intervals, values[:k], strict=True):
        assert low - spread <= exact <= high + spread, (low, exact, high)
    assert (np.abs(pca.explained_variance_ / values[:k] * (len(X) - 1) / len(X) - 1) < 1e-6).all()
    components = np.asarray(pca.components_, dtype=float)
    sines = np.linalg.norm(components - (components * vectors.T).sum(axis=1)[:, None] * vectors.T, axis=1)
    assert np.isfinite(certificate.angle_bounds).all()
    assert (sines <= certificate.angle_bounds + 1e-7).all(), (sines, certificate.angle_bounds)
