"""In the place of scikit-learn's: its arguments, its shapes, its estimators for batches and for data that is not centred."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.decomposition as reference
from data import sparse_counts, with_spectrum

from hbpca import PCA, IncrementalPCA, TruncatedSVD


@pytest.fixture
def X():
    return with_spectrum(300, 12, 12)


def quietly(fit, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fit(X)


@pytest.mark.parametrize(
    "svd_solver, solver",
    [("full", "covariance"), ("covariance_eigh", "covariance"), ("arpack", "krylov"), ("randomized", None)],
)
def test_svd_solver_is_mapped(X, svd_solver, solver):
    pca = quietly(PCA(4, svd_solver=svd_solver).fit, X)
    assert pca.outcome_ == "converged" and pca._fitted.tol == 1e-6
    assert solver is None or pca.solver_ == solver
    exact = reference.PCA(4, svd_solver="full").fit(X)
    np.testing.assert_allclose(pca.components_, exact.components_, rtol=0, atol=1e-12 if solver else 1e-5)


@pytest.mark.parametrize("more", [{"iterated_power": 50}, {"n_oversamples": 40}])
def test_more_iterations_ask_for_more_accuracy(more):
    X = np.random.default_rng(0).normal(size=(3000, 400)) * 0.97 ** np.arange(400)
    assert quietly(PCA(3, svd_solver="randomized", solver="auto", **more).fit, X).certificate_.worst < 1e-10


def test_to_rounding_is_reached_where_rank_is_deficient():
    for shape in [(100, 30), (30, 100)]:
        X = with_spectrum(*shape, 15)
        for svd_solver, k in [("full", None), ("covariance_eigh", None), ("arpack", 25)]:
            pca = quietly(PCA(k, svd_solver=svd_solver).fit, X)
            assert pca.outcome_ == "converged" and pca.n_passes_ < 100, (shape, svd_solver)
            assert pca.certificate_.status.count("no-variance") == pca.n_components_ - 15


def test_a_tolerance_that_is_given_counts(X):
    with pytest.warns(UserWarning, match="'stagnated'"):
        PCA(2, svd_solver="full", tol=1e-18).fit(X)


@pytest.mark.parametrize("shape", [(150, 4), (4, 150)])
@pytest.mark.parametrize("svd_solver, less", [("auto", 0), ("full", 0), ("randomized", 0), ("arpack", 1)])
def test_none_is_all_of_the_smaller_side(shape, svd_solver, less):
    X = np.random.default_rng(0).normal(size=shape)
    assert PCA(svd_solver=svd_solver).fit(X).components_.shape == (4 - less, shape[1])


def test_mle_is_the_dimension_of_scikit_learn(X):
    noisy = np.random.default_rng(1)
    for true in (1, 3, 7):
        Y = noisy.normal(size=(500, true)) @ noisy.normal(size=(true, 12)) * 3 + noisy.normal(size=(500, 12))
        ours, theirs = PCA("mle").fit(Y), reference.PCA("mle", svd_solver="full").fit(Y)
        assert ours.n_components_ == theirs.n_components_ == true and ours.n_components == "mle"
        np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-9)
    with pytest.raises(ValueError, match="n_samples >= n_features"):
        PCA("mle").fit(X[:5])


def test_no_components_leave_noise(X):
    ours, theirs = PCA(0).fit(X), reference.PCA(0, svd_solver="full").fit(X)
    assert ours.components_.shape == (0, 12) and ours.transform(X).shape == (300, 0)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-12)
    np.testing.assert_allclose(ours.score(X), theirs.score(X), rtol=1e-12)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), np.tile(X.mean(axis=0), (300, 1)), rtol=1e-12)
    with pytest.raises(ValueError, match="n_components = 0"):
        ours.save("never.safetensors")


def test_loadings_have_names(X):
    plain = PCA(2).fit(X)
    np.testing.assert_array_equal(plain.loadings_, plain.components_.T)
    names = [f"x{i}" for i in range(12)]
    named = PCA(2).fit(pd.DataFrame(X, columns=names)).loadings_
    assert list(named.index) == names and list(named.columns) == ["pca0", "pca1"]
    np.testing.assert_array_equal(named.to_numpy(), plain.components_.T)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_messages_name_columns_of_frames(frame):
    X = frame({"height": [1.0, 2.0, 3.0], "weight": [2.0, float("nan"), 1.0]})
    with pytest.raises(ValueError, match=r"row 1 \(counted from 0\), column 'weight' holds NaN"):
        PCA(1).fit(X)
    with pytest.raises(ValueError, match="column 'weight'"):
        TruncatedSVD(1).fit(X)
    fitted = PCA(1).fit(frame({"height": [1.0, 2.0, 3.0], "weight": [2.0, 0.0, 1.0]}))
    with pytest.raises(ValueError, match="column 'weight'"):
        fitted.transform(X)


def test_a_lazy_frame_is_collected(X):
    names = [f"x{i}" for i in range(12)]
    frame = pl.DataFrame(X, schema=names)
    pca = PCA(2).fit(frame.lazy())
    assert pca.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(pca.transform(frame.lazy()), PCA(2).fit(X).transform(X))


def test_a_file_is_transformed(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    pca = PCA(2).fit(X)
    np.testing.assert_array_equal(pca.transform(tmp_path / "x.npy"), pca.transform(X))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(12)])
    frame.to_csv(tmp_path / "x.csv", index=False)
    named = PCA(2).fit(frame)
    np.testing.assert_allclose(named.transform(str(tmp_path / "x.csv")), named.transform(frame), rtol=1e-12)
    frame[frame.columns[::-1]].to_csv(tmp_path / "reversed.csv", index=False)
    with pytest.raises(ValueError, match="same order"):
        named.transform(tmp_path / "reversed.csv")
    frame.rename(columns={"x3": "other"}).to_csv(tmp_path / "renamed.csv", index=False)
    with pytest.raises(ValueError, match="the file has 'other'"):
        named.transform(tmp_path / "renamed.csv")
    np.save(tmp_path / "narrow.npy", X[:, :5])
    with pytest.raises(ValueError, match="narrow.npy has 5 features"):
        pca.transform(tmp_path / "narrow.npy")


def test_incremental_pca_is_exact_whatever_the_batches_are(X):
    whole = PCA(3).fit(X)
    batches = IncrementalPCA(3)
    for rows in np.array_split(X, 7):
        batches.partial_fit(rows)
    theirs = reference.IncrementalPCA(3, batch_size=50).fit(X)
    for ours in (batches, IncrementalPCA(3, batch_size=50).fit(X)):
        np.testing.assert_allclose(ours.components_, whole.components_, atol=1e-9)
        np.testing.assert_allclose(ours.var_, theirs.var_, rtol=1e-9)
        assert ours.n_samples_seen_ == theirs.n_samples_seen_ == 300 and ours.outcome_ == "converged"
    assert IncrementalPCA(3, batch_size=50).fit(X).batch_size_ == 50
    assert set(IncrementalPCA().get_params()) == set(reference.IncrementalPCA().get_params())


def test_incremental_pca_fits_wide_data_at_once():
    X = sparse_counts(60, 5000, 0.02)
    ours = IncrementalPCA(2).fit(X)
    assert ours.n_samples_seen_ == 60 and ours.var_.shape == (5000,)
    with pytest.raises(ValueError, match="columns = 5000"):
        ours.partial_fit(X)


@pytest.mark.parametrize("algorithm", ["arpack", "randomized"])
def test_truncated_svd_has_the_numbers_of_scikit_learn(algorithm):
    X = sparse_counts(400, 60, 0.2)
    ours = quietly(TruncatedSVD(4, algorithm=algorithm).fit, X)
    theirs = reference.TruncatedSVD(4, algorithm="arpack", random_state=0).fit(X)
    for name in ("components_", "singular_values_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-5, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-4)
    assert ours.outcome_ == "converged" and not hasattr(ours, "mean_")
    assert ours.get_params() == {**theirs.get_params(), "algorithm": algorithm, "random_state": None}
    with pytest.raises(ValueError, match="'randomized' or 'arpack'"):
        TruncatedSVD(algorithm="lanczos").fit(X)


def test_scikit_learn_is_imported_with_the_first_estimator():
    code = """
import sys, hbpca
hbpca.solve([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]], "power")
assert "sklearn" not in sys.modules and "pandas" not in sys.modules
hbpca.PCA
assert "sklearn" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
