"""Rows in chunks: the same as all rows at once, proved, and refused where it cannot be."""

import itertools
import pickle

import numpy as np
import pytest

from hbpca import PCA

sparse = pytest.importorskip("scipy.sparse")

EPS = np.finfo(np.float64).eps


@pytest.fixture
def X():
    generator = np.random.default_rng(5)
    return generator.standard_normal((300, 12)) * np.linspace(4, 1, 12) + generator.standard_normal(12) * 3


def in_chunks(pca, X, cuts, weights=None):
    edges = [0, *cuts, X.shape[0]]
    for start, end in itertools.pairwise(edges):
        chunk = None if weights is None else weights[start:end]
        pca.partial_fit(X[start:end], sample_weight=chunk)
    return pca


def assert_same(a, b):
    """Eigenvalues within both certificates, vectors within both bounds on angles."""
    room = a.certificate_.residuals + b.certificate_.residuals
    n = a.n_samples_
    off = np.abs(a.explained_variance_ - b.explained_variance_) * (n - 1) / n
    assert np.all(off <= room + EPS * a.explained_variance_)
    # |a − b| ≤ √2·sin∠ for unit vectors of the same sign; NaN where neighbours are too close for a bound.
    angles = np.asarray(a.certificate_.angle_bounds, dtype=float) + np.asarray(b.certificate_.angle_bounds, dtype=float)
    distances = np.linalg.norm(a.components_ - b.components_, axis=1)
    assert np.all(distances <= np.sqrt(2) * np.nan_to_num(angles, nan=np.inf) + 100 * EPS)
    np.testing.assert_allclose(a.mean_, b.mean_, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [None, "std", "minmax"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("cuts", [[], [50], [20, 21, 200]])
def test_chunks_give_what_all_rows_give(X, center, scale, cuts):
    whole = PCA(4, center=center, scale=scale, tol=1e-12).fit(X)
    assert_same(in_chunks(PCA(4, center=center, scale=scale), X, cuts), whole)


def test_scikit_learn_agrees_on_the_union(X):
    decomposition = pytest.importorskip("sklearn.decomposition")
    ours = in_chunks(PCA(5), X, [40, 100, 170])
    theirs = decomposition.PCA(5, svd_solver="full").fit(X)
    np.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-12)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-12)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-11)
    np.testing.assert_allclose(np.abs(ours.components_ @ theirs.components_.T), np.eye(5), atol=1e-10)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-9)


def test_the_certificate_holds_for_all_rows(X):
    pca = in_chunks(PCA(4), X, [10, 11, 250])
    centred = X - X.mean(axis=0)
    C = centred.T @ centred / len(X)
    theta = np.einsum("ij,jk,ik->i", pca.components_, C, pca.components_)
    residuals = np.linalg.norm(pca.components_ @ C - theta[:, None] * pca.components_, axis=1)
    # C itself is rounded here: n products for each of d² entries.
    rounding = len(X) * EPS * np.trace(C)
    assert np.all(residuals <= pca.certificate_.residuals + rounding)
    eigenvalues = np.linalg.eigvalsh(C)[::-1][:4]
    low, high = pca.certificate_.eigenvalue_intervals.T
    assert np.all(low - rounding <= eigenvalues)
    assert np.all(eigenvalues <= high + rounding)
    assert pca.outcome_ == "converged"
    assert pca.solver_ == "covariance"


def test_every_attribute_is_there_after_every_call(X):
    pca, fitted = PCA(3), vars(PCA(3).fit(X))
    for end in (30, 60, 300):
        start = getattr(pca, "n_samples_seen_", 0)
        assert pca.partial_fit(X[start:end]) is pca
        assert pca.n_samples_seen_ == pca.n_samples_ == end
        assert fitted.keys() <= vars(pca).keys()
        assert_same(pca, PCA(3, tol=1e-12).fit(X[:end]))


def test_sparse_chunks_stay_sparse_and_weights_count(X):
    S = sparse.random(200, 15, density=0.3, random_state=3, format="csr")
    assert_same(in_chunks(PCA(3), S, [50, 120]), PCA(3, tol=1e-12).fit(S.toarray()))
    weights = np.arange(len(X)) % 3.0
    repeated = np.repeat(X, weights.astype(int), axis=0)
    weighted = in_chunks(PCA(3), X, [100], weights)
    np.testing.assert_allclose(weighted.explained_variance_ratio_, PCA(3).fit(repeated).explained_variance_ratio_, rtol=1e-12)
    with pytest.raises(ValueError, match="1 is needed"):
        PCA(3).partial_fit(X, sample_weight=np.ones((300, 1)))


def test_single_rows_float32_and_unchecked_arrays(X):
    pca = PCA(1).partial_fit(X[:2])
    for row in X[2:50]:
        pca.partial_fit(row.reshape(1, -1))
    assert_same(pca, PCA(1, tol=1e-12).fit(X[:50]))
    single = PCA(2).partial_fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    assert_same(PCA(2, warm_start=True).partial_fit(X, check_input=False), PCA(2, tol=1e-12).fit(X))


def test_no_other_solver_is_used(X):
    pca = PCA(1, solver="vr-hb-power").partial_fit(X)
    assert (pca.solver_, pca.chosen_because_) == ("covariance", "only the moments of the rows are kept")


def test_shares_and_all_components(X):
    assert in_chunks(PCA(0.8), X, [100]).n_components_ == PCA(0.8).fit(X).n_components_
    assert in_chunks(PCA(), X, [100]).n_components_ == 12


def test_the_first_call_fixes_the_columns(X):
    pca = PCA(2).partial_fit(X)
    with pytest.raises(ValueError, match="X has 5 features, but PCA is expecting 12 features"):
        pca.partial_fit(X[:, :5])
    with pytest.raises(ValueError, match="columns of the rows to add: 5 given where 12 are needed"):
        pca.partial_fit(X[:, :5].copy(), check_input=False)
    assert pca.n_samples_seen_ == 300


def test_a_refused_chunk_leaves_everything_as_it_was(X):
    pca = PCA(2).partial_fit(X[:100])
    before = pca.components_.copy()
    bad = X[100:].copy()
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="row 7, column 3"):
        pca.partial_fit(bad)
    assert pca.n_samples_seen_ == 100
    assert np.array_equal(pca.components_, before)
    assert_same(pca.partial_fit(X[100:]), PCA(2, tol=1e-12).fit(X))


def test_what_it_cannot_do_it_refuses_with_the_way_out(X):
    with pytest.raises(ValueError, match=r"columns = 5000: .* 128 MiB .* memory limit"):
        PCA(2).partial_fit(sparse.random(3, 5000, density=0.01, format="csr", random_state=0))
    with pytest.raises(ValueError, match="n_components = 5: 3 rows"):
        PCA(5).partial_fit(X[:3])


def test_fit_and_partial_fit_do_not_mix(X):
    pca = PCA(2).partial_fit(X[:100])
    assert_same(pca.fit(X), PCA(2).fit(X))
    assert not hasattr(pca, "n_samples_seen_")
    with pytest.warns(UserWarning, match="partial_fit begins anew"):
        pca.partial_fit(X[:50])
    assert_same(pca, PCA(2, tol=1e-12).fit(X[:50]))


def test_pickles_go_on(X):
    pca = pickle.loads(pickle.dumps(PCA(2).partial_fit(X[:100])))
    assert_same(pca.partial_fit(X[100:]), PCA(2, tol=1e-12).fit(X))


def test_means_far_from_zero_do_no_harm(X):
    far = X + 1e6
    chunked, whole = in_chunks(PCA(3), far, [13, 100]), PCA(3, tol=1e-12).fit(far)
    np.testing.assert_allclose(chunked.explained_variance_, whole.explained_variance_, rtol=1e-8)
    assert chunked.outcome_ == "converged"
