"""Missing values: equal to the explicit computation on the completed matrix, and a fixed point where one is claimed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hbpca
from hbpca import PCA


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 7)) * 2 + 0.3 * rng.standard_normal((200, 7)) + np.arange(7.0)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def explained(X, k, *, scale=False):
    centred = X - X.mean(axis=0)
    if scale:
        centred = centred / centred.std(axis=0)
    return np.linalg.svd(centred, compute_uv=False)[:k] ** 2 / (len(X) - 1)


def test_the_default_refuses_and_names_the_others(data):
    with pytest.raises(ValueError, match="missing: drop-rows, mean or em"):
        PCA(2).fit(data)
    with pytest.raises(ValueError, match="choose one of error, drop-rows, mean, em"):
        PCA(2, missing="median").fit(data)
    fitted = PCA(2).fit(np.nan_to_num(data))
    with pytest.raises(ValueError, match="holds NaN"):
        fitted.transform(data)


@pytest.mark.parametrize("scale", [None, "std"])
def test_the_mean_is_the_completed_matrix(data, scale):
    completed = np.where(np.isnan(data), np.nanmean(data, axis=0), data)
    pca = PCA(3, missing="mean", scale=scale, tol=1e-10).fit(data)
    np.testing.assert_allclose(pca.explained_variance_, explained(completed, 3, scale=scale), rtol=1e-9)
    np.testing.assert_allclose(pca.transform(data), pca.transform(completed), atol=1e-12)
    assert pca.missing_values_["entries"] == np.isnan(data).sum()
    assert np.isnan(data).any(), "the caller's array stays as it is"


def test_dropped_rows_keep_their_place(data):
    complete = ~np.isnan(data).any(axis=1)
    pca = PCA(3, missing="drop-rows", tol=1e-10).fit(data)
    np.testing.assert_allclose(pca.explained_variance_, explained(data[complete], 3), rtol=1e-9)
    scores = pca.transform(data)
    assert scores.shape == (200, 3)
    assert np.isnan(scores[~complete]).all()
    np.testing.assert_allclose(scores[complete], pca.transform(data[complete]), atol=1e-12)
    assert pca.n_samples_ == complete.sum()


def test_em_is_a_fixed_point_of_its_definition(data):
    pca = PCA(2, missing="em", em_tol=1e-10, tol=1e-10).fit(data)
    assert pca.missing_values_["is_stationary_point"]
    completed = np.where(np.isnan(data), pca.inverse_transform(pca.transform(data)), data)
    np.testing.assert_allclose(pca.mean_, completed.mean(axis=0), atol=1e-7)
    _, s, vt = np.linalg.svd(completed - completed.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(pca.explained_variance_, s[:2] ** 2 / 199, rtol=1e-7)
    again = completed.mean(axis=0) + (completed - completed.mean(axis=0)) @ vt[:2].T @ vt[:2]
    holes = np.isnan(data)
    np.testing.assert_allclose(again[holes], completed[holes], atol=1e-6)


def test_em_agrees_with_statsmodels(data):
    multivariate = pytest.importorskip("statsmodels.multivariate.pca", reason="statsmodels is not installed")
    # It subtracts the means of what is there once and for all; without centring both are the same iteration.
    X = data - np.nanmean(data, axis=0) + 3
    theirs = multivariate.PCA(
        X, ncomp=2, standardize=False, demean=False, normalize=False, missing="fill-em", tol_em=1e-12, max_em_iter=20_000
    )
    ours = PCA(2, center=False, missing="em", em_tol=1e-12, em_max_rounds=20_000, max_passes=1e9, tol=1e-12).fit(X)
    filled = np.where(np.isnan(X), ours.inverse_transform(ours.transform(X)), X)
    np.testing.assert_allclose(filled, np.asarray(theirs._adjusted_data), atol=1e-6)


def test_rounds_that_are_spent_are_warned_of(data):
    with pytest.warns(hbpca._compat.ConvergenceWarning, match="em stopped after 1 rounds"):
        pca = PCA(2, missing="em", em_max_rounds=1).fit(data)
    assert pca.outcome_ == "budget"


def test_rows_and_columns_with_nothing_in_them(data):
    X = data.copy()
    X[5] = np.nan
    for missing in ("mean", "em"):
        pca = PCA(2, missing=missing).fit(X)
        np.testing.assert_allclose(pca.transform(X)[5], 0, atol=1e-12)
    X[:, 2] = np.nan
    for missing in ("mean", "em"):
        with pytest.raises(ValueError, match="every value of column 2"):
            PCA(2, missing=missing).fit(X)
    with pytest.raises(ValueError, match="every row has a missing value"):
        PCA(2, missing="drop-rows").fit(X)


def test_saved_and_pickled_models_remember(data, tmp_path):
    pca = PCA(2, missing="em", em_ridge=0.1).fit(data)
    pca.save(tmp_path / "m.safetensors")
    for other in (hbpca.load(tmp_path / "m.safetensors"), pickle.loads(pickle.dumps(pca))):
        assert (other.missing, other.em_ridge) == ("em", 0.1)
        assert other.missing_values_ == pca.missing_values_
        np.testing.assert_allclose(other.transform(data), pca.transform(data), atol=1e-12)


def test_files_frames_strides_and_chunks(data, tmp_path):
    want = PCA(2, missing="mean").fit(data)
    np.save(tmp_path / "x.npy", data)
    np.savetxt(tmp_path / "x.csv", data, delimiter=",", header=",".join("abcdefg"), comments="", fmt="%.17g")
    for path in (tmp_path / "x.npy", tmp_path / "x.csv"):
        pca = PCA(2, missing="mean").fit(path)
        np.testing.assert_allclose(pca.explained_variance_, want.explained_variance_, rtol=1e-12)
        np.testing.assert_allclose(pca.transform(path), want.transform(data), atol=1e-10)
    assert np.isnan(hbpca.read(tmp_path / "x.csv", missing="nan").X).sum() == np.isnan(data).sum()
    wide = np.concatenate([data, data], axis=1)[:, :7]
    np.testing.assert_allclose(PCA(2, missing="mean").fit(wide).explained_variance_, want.explained_variance_, rtol=1e-12)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data, columns=list("abcdefg")).convert_dtypes()
    np.testing.assert_allclose(PCA(2, missing="mean").fit(frame).explained_variance_, want.explained_variance_, rtol=1e-12)
    chunks = PCA(2, missing="drop-rows").partial_fit(data[:90]).partial_fit(data[90:])
    dropped = PCA(2, missing="drop-rows").fit(data)
    np.testing.assert_allclose(chunks.explained_variance_, dropped.explained_variance_, rtol=1e-10)
    with pytest.raises(ValueError, match="only drop-rows is possible"):
        PCA(2, missing="mean").partial_fit(data)


def test_the_mean_is_not_known_without_centring(data):
    pca = PCA(2, missing="mean", center=False).fit(data)
    with pytest.raises(ValueError, match="knows no means"):
        pca.transform(data)


def test_single_precision(data):
    X = data.astype(np.float32)
    completed = np.where(np.isnan(X), np.nanmean(X.astype(float), axis=0), X.astype(float))
    pca = PCA(3, missing="mean").fit(X)
    assert pca.components_.dtype == np.float32
    np.testing.assert_allclose(pca.explained_variance_, explained(completed, 3), rtol=1e-5)
    assert np.isfinite(PCA(2, missing="em").fit(X).transform(X)).all()
