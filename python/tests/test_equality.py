"""Equal to scikit-learn's `full` solver, which computes a singular value decomposition of the centred data.

Tolerances: our vectors are within the angle that their certificate proves; a backward stable SVD is within a small multiple of
ε·σ₁/gap. Values that are stored as float32 add its rounding.
"""

import os

import numpy as np
import pytest
from data import sparse_counts, with_spectrum
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import PCA as Reference
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import StandardScaler

from hbpca import PCA, read

EPS = np.finfo(np.float64).eps


def angle_tolerance(ours, reference, dtype):
    """Largest distance of each pair of unit vectors."""
    sigma = np.append(reference.singular_values_, 0)
    gaps = np.minimum(-np.diff(sigma), np.append(np.inf, -np.diff(sigma)[:-1]))
    svd = 10 * max(reference.n_samples_, reference.n_features_in_) * EPS * sigma[0] / gaps
    return np.sqrt(2) * np.asarray(ours.certificate_.angle_bounds) + svd + np.finfo(dtype).eps


def assert_equal_fits(ours, reference, X, rank):
    dtype = X.dtype
    eps = np.finfo(dtype).eps
    k = min(ours.n_components_, rank)
    tolerance = angle_tolerance(ours, reference, dtype)[:k]
    distance = np.linalg.norm(ours.components_[:k] - reference.components_[:k], axis=1)
    assert (distance <= tolerance).all(), (distance, tolerance)

    largest = reference.explained_variance_[0]
    rounding = 4 * eps * largest + (ours.certificate_.residuals.max() * 2)
    np.testing.assert_allclose(ours.explained_variance_, reference.explained_variance_, rtol=0, atol=rounding)
    np.testing.assert_allclose(
        ours.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=0, atol=rounding / largest
    )
    np.testing.assert_allclose(
        ours.singular_values_[:k], reference.singular_values_[:k], rtol=1e-6 if dtype == np.float32 else 1e-9
    )
    spread = np.abs(X).max()
    np.testing.assert_allclose(ours.mean_, reference.mean_, rtol=0, atol=8 * EPS * spread)
    left = min(X.shape) - ours.n_components_
    noise = rounding * min(X.shape) / max(left, 1)
    np.testing.assert_allclose(ours.noise_variance_, reference.noise_variance_, rtol=0, atol=noise)
    assert (ours.n_components_, ours.n_samples_, ours.n_features_in_) == (
        reference.n_components_,
        reference.n_samples_,
        reference.n_features_in_,
    )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("rank", [5, 30])
@pytest.mark.parametrize("shape", [(200, 20), (20, 60)])
def test_fit_transform_inverse(shape, rank, whiten, dtype, seed):
    X = with_spectrum(*shape, rank, seed, dtype=dtype)
    rank = min(rank, shape[0] - 1, shape[1])
    k = min(8, rank - 2)  # leaves noise, without which there is no likelihood
    ours = PCA(k, whiten=whiten).fit(X)
    exact = X.astype(np.float64)
    reference = Reference(k, whiten=whiten, svd_solver="full").fit(exact)
    assert ours.components_.dtype == ours.explained_variance_.dtype == ours.transform(X).dtype == dtype
    assert_equal_fits(ours, reference, X, rank)

    # Scores differ by the angles of the components, times the length of the rows, over what whitening divides by.
    length = np.linalg.norm(exact - reference.mean_, axis=1).max() + np.finfo(dtype).eps * np.abs(X).max()
    divisor = np.sqrt(reference.explained_variance_[k - 1]) if whiten else 1.0
    tolerance = angle_tolerance(ours, reference, dtype).max() * length / divisor
    scores = reference.transform(exact)
    tolerance += 4 * np.finfo(dtype).eps * np.abs(scores).max()
    np.testing.assert_allclose(ours.transform(X), scores, rtol=0, atol=tolerance)
    np.testing.assert_allclose(ours.fit_transform(X), scores, rtol=0, atol=tolerance)
    back = reference.inverse_transform(scores)
    tolerance = tolerance * divisor * np.sqrt(k) * 4 + 4 * np.finfo(dtype).eps * np.abs(back).max()
    assert ours.inverse_transform(scores.astype(dtype)).dtype == dtype
    np.testing.assert_allclose(ours.inverse_transform(scores.astype(dtype)), back, rtol=0, atol=tolerance)

    # With C⁻¹ = σ⁻²(I − UUᵀ) + U diag(1/v) Uᵀ, angles δ of the
    # components and errors ρ of the variances change the mean of aᵀC⁻¹a by at most 2√k·δ·E‖a‖²/σ² + dρ/σ², and ln det C by
    # dρ/σ².
    plain = Reference(k, svd_solver="full").fit(exact)
    noise, total = plain.noise_variance_, exact.var(axis=0, ddof=1).sum()
    rounding = 4 * np.finfo(dtype).eps * total + 2 * ours.certificate_.residuals.max()
    angle = angle_tolerance(ours, reference, dtype).max()
    tolerance = (2 * np.sqrt(k) * angle * total + 2 * shape[1] * rounding) / noise
    assert abs(PCA(k).fit(X).score(X) - plain.score(exact)) <= tolerance < 0.1


@pytest.mark.parametrize("shape", [(200, 20), (30, 60)])
def test_gaussian_model(shape):
    X = with_spectrum(*shape, 25) + 0.01 * np.random.default_rng(1).standard_normal(shape)
    ours = PCA(6, tol=1e-12).fit(X)
    reference = Reference(6, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.get_covariance(), reference.get_covariance(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.get_precision(), reference.get_precision(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.get_precision() @ ours.get_covariance(), np.eye(shape[1]), atol=1e-8)
    np.testing.assert_allclose(ours.score_samples(X), reference.score_samples(X), rtol=1e-7)
    np.testing.assert_allclose(ours.score(X), reference.score(X), rtol=1e-8)
    # scikit-learn's model of whitened data, v(v − σ²) + σ² along each component.
    ours, reference = PCA(6, whiten=True, tol=1e-12).fit(X), Reference(6, whiten=True, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.get_covariance(), reference.get_covariance(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.score(X), reference.score(X), rtol=1e-7)


def test_all_components_of_data_with_full_rank():
    X = with_spectrum(100, 8, 8)
    ours, reference = PCA().fit(X), Reference(svd_solver="full").fit(X)
    assert_equal_fits(ours, reference, X, 8)
    assert ours.noise_variance_ == 0
    np.testing.assert_allclose(ours.score(X), reference.score(X), rtol=1e-8)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-12 * np.abs(X).max())


def test_all_components_are_those_with_variance():
    # The last 15 of 20 vectors are directions of rounding noise: rows of weight 2 and rows given twice would have others.
    ours = PCA().fit(with_spectrum(20, 60, 5))
    assert ours.components_.shape == (5, 60)
    assert ours.certificate_.status == ("converged",) * 5
    assert PCA().fit(np.ones((5, 3))).n_components_ == 1
    # Asked for by number they stay, and the certificate says what they are.
    ours = PCA(20).fit(with_spectrum(20, 60, 5))
    assert ours.certificate_.status == ("converged",) * 5 + ("no-variance",) * 15
    assert (ours.explained_variance_ >= 0).all() and ours.noise_variance_ == 0
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(20), atol=1e-12)


def test_the_one_component_that_centring_empties_stays():
    ours = PCA().fit(with_spectrum(20, 60, 20))
    assert ours.components_.shape == (20, 60)
    assert ours.certificate_.status[-1] == "no-variance"


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_share_of_the_variance(share):
    X = with_spectrum(300, 15, 15)
    ours, reference = PCA(share).fit(X), Reference(share, svd_solver="full").fit(X)
    assert_equal_fits(ours, reference, X, 15)


@pytest.mark.parametrize("solver", ["covariance", "krylov", "anchored"])
def test_every_solver_for_many_components_agrees(solver):
    X = with_spectrum(2000, 40, 40)
    ours = PCA(5, solver=solver, tol=1e-10).fit(X)
    reference = Reference(5, svd_solver="full").fit(X)
    assert ours.outcome_ == "converged" and ours.solver_ == solver
    assert_equal_fits(ours, reference, X, 40)


@pytest.mark.parametrize("container", ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix", "coo_matrix"])
@pytest.mark.parametrize("scale", [None, "std", "minmax"])
@pytest.mark.parametrize("center", [True, False])
def test_sparse_equals_dense(container, scale, center):
    import scipy.sparse as sp

    X = sparse_counts(300, 25, 0.2)
    sparse = PCA(4, scale=scale, center=center, tol=1e-10).fit(getattr(sp, container)(X))
    dense = PCA(4, scale=scale, center=center, tol=1e-10).fit(X.toarray())
    angle = np.sqrt(2) * (sparse.certificate_.angle_bounds + dense.certificate_.angle_bounds).max() + 8 * EPS
    np.testing.assert_allclose(sparse.components_, dense.components_, rtol=0, atol=angle)
    np.testing.assert_allclose(sparse.explained_variance_, dense.explained_variance_, rtol=1e-9)
    length = np.abs(X.toarray()).max() * 5 / (1 if scale is None else dense.scale_.min())
    np.testing.assert_allclose(sparse.transform(X), dense.transform(X.toarray()), rtol=0, atol=10 * length * angle)
    # k < d leaves noise, so that both have a density.
    np.testing.assert_allclose(sparse.score(X), dense.score(X.toarray()), rtol=1e-9)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_standardising_equals_a_pipeline(as_sparse):
    X = sparse_counts(400, 12, 0.5)
    dense = X.toarray()
    ours = PCA(3, scale="std").fit(X if as_sparse else dense)
    scaler = StandardScaler().fit(dense)
    prepared = scaler.transform(dense)
    reference = Reference(3, svd_solver="full").fit(prepared)
    np.testing.assert_allclose(ours.scale_, scaler.scale_, rtol=1e-12)
    np.testing.assert_allclose(ours.explained_variance_, reference.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(ours.components_, reference.components_, atol=1e-8)
    np.testing.assert_allclose(ours.transform(X if as_sparse else dense), reference.transform(prepared), atol=1e-7)
    np.testing.assert_allclose(ours.score(X if as_sparse else dense), reference.score(prepared), rtol=1e-9)


def test_without_centring_it_is_a_truncated_svd():
    X = sparse_counts(300, 40, 0.3)
    ours = PCA(4, center=False, tol=1e-12).fit(X)
    sigma, right = np.linalg.svd(X.toarray(), full_matrices=False)[1:]
    np.testing.assert_allclose(ours.singular_values_, sigma[:4], rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_, sigma[:4] ** 2 / 299, rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(ours.components_ * right[:4], axis=1)), 1, rtol=1e-10)
    np.testing.assert_array_equal(ours.mean_, 0)
    reference = TruncatedSVD(4, algorithm="arpack", random_state=0).fit(X)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(reference.transform(X)), atol=1e-6)


def test_means_far_larger_than_deviations():
    # scikit-learn's covariance_eigh, its default for such shapes, is off by 61 % here.
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((5000, 10)) * 0.7 ** np.arange(10)
    X = Z + 1e7
    ours = PCA(3).fit(X)
    reference = Reference(3, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.explained_variance_, reference.explained_variance_, rtol=1e-4)
    assert np.abs(np.sum(ours.components_ * reference.components_, axis=1)).min() > 1 - 1e-4**2
    default = Reference(3, svd_solver="auto").fit(X)
    assert np.abs(default.explained_variance_ / reference.explained_variance_ - 1).max() > 1e-4


def subspace_error(components, exact):
    """1 − cos² of the largest angle between two subspaces."""
    ours = np.linalg.qr(components.astype(np.float64).T)[0].T
    return 1 - np.linalg.svd(ours @ exact.T)[1].min() ** 2


def test_where_the_randomized_solver_is_wrong_without_a_word():
    # A large value, then a shelf just above a flat tail.
    X = np.random.default_rng(0).standard_normal((3000, 300)) * np.r_[1e3, np.full(9, 1.05), np.ones(290)]
    exact = Reference(10, svd_solver="full").fit(X).components_
    assert subspace_error(Reference(10, svd_solver="randomized", random_state=0).fit(X).components_, exact) > 0.5
    ours = PCA(10).fit(X)
    assert ours.outcome_ == "converged"
    assert subspace_error(ours.components_, exact) <= ours.certificate_.subspace_angle_bound**2 + 300 * EPS


@pytest.mark.skipif("HBPCA_DATA" not in os.environ, reason="set HBPCA_DATA to a folder with covtype.csv.gz")
def test_covtype():
    X = read(os.path.join(os.environ["HBPCA_DATA"], "covtype.csv.gz"), label_column=-1).X
    prepared = StandardScaler().fit_transform(X.astype(np.float64))
    exact = np.linalg.eigh(np.cov(prepared.T))[1][:, ::-1][:, :10].T
    assert subspace_error(PCA(10, scale="std").fit(X).components_, exact) < 1e-12
    guess = Reference(10, svd_solver="randomized", random_state=0).fit(prepared.astype(np.float32))
    assert subspace_error(guess.components_, exact) > 0.5


finite = st.floats(-1e3, 1e3, allow_nan=False, width=32)


# scikit-learn divides by the variance of constant data.
@pytest.mark.filterwarnings("ignore:invalid value")
@given(arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 8)), elements=finite), st.data())
def test_any_array(X, data):
    k = data.draw(st.integers(1, min(X.shape)))
    ours, reference = PCA(k).fit(X), Reference(k, svd_solver="full").fit(X)
    scale = np.abs(X).max() ** 2 * max(X.shape)
    tolerance = 100 * max(X.shape) * EPS * max(scale, np.finfo(np.float64).tiny)
    np.testing.assert_allclose(ours.explained_variance_, reference.explained_variance_, rtol=0, atol=tolerance)
    gram = ours.components_ @ ours.components_.T
    np.testing.assert_allclose(gram, np.eye(k), atol=100 * max(X.shape) * EPS)
    # What is kept and what is left add up to each row.
    rest = X - ours.inverse_transform(ours.transform(X))
    np.testing.assert_allclose(rest @ ours.components_.T, 0, atol=1000 * EPS * max(np.abs(X).max(), 1e-300) * max(X.shape))
