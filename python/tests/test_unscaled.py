"""Data as they come, in mixed units: every component against scikit-learn's full SVD, within its printed bound."""

import os

import numpy as np
import pytest

from hbpca import PCA, read

datasets = pytest.importorskip("sklearn.datasets")
SklearnPCA = pytest.importorskip("sklearn.decomposition").PCA


def covtype():
    if "HBPCA_DATA" not in os.environ:
        pytest.skip("set HBPCA_DATA to a folder with covtype.csv.gz")
    return np.asarray(read(os.path.join(os.environ["HBPCA_DATA"], "covtype.csv.gz"), label_column=-1).X, dtype=np.float64)


DATA = {
    "digits": lambda: datasets.load_digits().data,
    "wine": lambda: datasets.load_wine().data,
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    "covtype": covtype,
}


def sines(components, truth):
    """Of the angle of each component to the true one."""
    along = (components * truth).sum(axis=1)
    return np.linalg.norm(components - along[:, None] * truth, axis=1)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("solver", ["auto", "krylov", "covariance", "anchored"])
def test_components_are_those_of_a_full_decomposition(name, solver):
    X = DATA[name]()
    n, d = X.shape
    k = min(10, d)
    full = SklearnPCA(svd_solver="full").fit(X)
    truth, variances = full.components_[:k], full.explained_variance_
    # A backward stable SVD moves singular values by a few d·u·σ₁, and a vector by that over the gap of singular values.
    roots = np.sqrt(variances)
    gaps = np.array([np.abs(np.delete(roots, i) - roots[i]).min() for i in range(k)])
    of_full = 4 * d * np.finfo(float).eps * roots[0] / gaps
    for tol, most in ((1e-6, None), (1e-10, 1e-7)):
        pca = PCA(k, solver=solver, tol=tol).fit(X)
        certificate = pca.certificate_
        assert pca.outcome_ == "converged" or tol < 1e-6, pca.outcome_
        found = sines(pca.components_, truth)
        for i in range(k):
            bound = certificate.angle_bounds[i]
            if bound is not None and np.isfinite(bound):
                assert found[i] <= bound + of_full[i], (name, solver, tol, i, found[i], bound)
            if most is not None and pca.outcome_ == "converged":
                assert found[i] <= most + of_full[i], (name, solver, i, found[i])
        allowed = certificate.residuals * n / (n - 1) + 8 * d * np.finfo(float).eps * np.sqrt(variances[0] * variances[:k])
        assert (np.abs(pca.explained_variance_ - variances[:k]) <= allowed).all(), (name, solver, tol)
