"""Frequency weights: an integer weight is a repeated row, a zero weight a row left out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hbpca import PCA

RNG = np.random.default_rng(11)
X = RNG.standard_normal((300, 8)) * np.linspace(3, 0.5, 8) + 2
COUNTS = RNG.integers(0, 4, 300)


def assert_same(a, b):
    np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(a.mean_, b.mean_, rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(a.components_ * b.components_, axis=1)), 1, rtol=1e-8)


def test_partial_fit_with_weights_is_fit_on_repeated_rows():
    truth = PCA(3, tol=1e-12).fit(np.repeat(X, COUNTS, axis=0))
    pca = PCA(3)
    for start in range(0, 300, 70):
        rows = slice(start, start + 70)
        pca.partial_fit(X[rows], sample_weight=COUNTS[rows])
    assert_same(pca, truth)
    assert pca.n_samples_seen_ == 300


def test_chunks_and_rows_of_weight_zero_are_left_out():
    spoiled = X.copy()
    spoiled[200:] = np.nan
    weights = np.where(np.arange(300) < 200, 1.0, 0.0)
    truth = PCA(3, tol=1e-12).fit(X[:200])
    assert_same(PCA(3, tol=1e-12).fit(spoiled, sample_weight=weights), truth)
    assert_same(PCA(3).partial_fit(spoiled, sample_weight=weights), truth)
    chunks = PCA(3).partial_fit(X[:200]).partial_fit(spoiled[200:], sample_weight=weights[200:])
    assert_same(chunks, truth)
    assert chunks.n_samples_seen_ == 300


def test_a_file_on_disk_takes_weights(tmp_path):
    big = (RNG.standard_normal((60_000, 256)) * np.linspace(2, 0.2, 256) + 1).astype(np.float32)
    weights = RNG.integers(0, 3, len(big)).astype(float)
    np.save(tmp_path / "x.npy", big)
    streamed = PCA(3, memory_limit="64M", tol=1e-10).fit(tmp_path / "x.npy", sample_weight=weights)
    assert "on disk" in streamed.chosen_because_
    loaded = PCA(3, tol=1e-10).fit(big, sample_weight=weights)
    np.testing.assert_allclose(streamed.explained_variance_, loaded.explained_variance_, rtol=1e-5)
    np.testing.assert_allclose(np.abs(np.sum(streamed.components_ * loaded.components_, axis=1)), 1, rtol=1e-5)


def test_weights_of_one_or_less_say_that_there_is_no_n_minus_one():
    with pytest.warns(UserWarning, match=r"weigh 0\.5 in all, which leaves no n - 1"):
        pca = PCA(2).fit(X, sample_weight=np.full(300, 0.5 / 300))
    assert np.all(pca.explained_variance_ == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = PCA(2).fit(X)
    np.testing.assert_allclose(pca.explained_variance_ratio_, whole.explained_variance_ratio_, rtol=1e-12)
