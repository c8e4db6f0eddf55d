"""Files that do not fit the memory are read from disk in every pass."""

from __future__ import annotations

import numpy as np
import pytest

from hbpca import PCA


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((60_000, 256)) * np.linspace(2, 0.2, 256) + 1).astype(np.float32)
    path = tmp_path_factory.mktemp("data") / "x.npy"
    np.save(path, X)
    return path, X


@pytest.mark.parametrize("solver", ["auto", "anchored", "krylov"])
def test_a_file_that_does_not_fit_gives_what_the_array_gives(file, solver):
    path, X = file
    choices = {"n_components": 3, "scale": "std", "solver": solver}
    loaded = PCA(**choices).fit(X)
    for given in (path, str(path), np.load(path, mmap_mode="r")):
        streamed = PCA(memory_limit="64M", **choices).fit(given)
        assert streamed.outcome_ == "converged"
        if solver == "auto":
            assert "on disk" in streamed.chosen_because_
        bound = np.array(streamed.certificate_.residuals) + np.array(loaded.certificate_.residuals)
        n = len(X)
        difference = np.abs(streamed.explained_variance_ - loaded.explained_variance_) * (n - 1) / n
        # float32 attributes round.
        assert (difference <= bound + 1e-6 * loaded.explained_variance_).all()
        assert streamed.n_features_in_ == 256


def test_a_file_that_fits_is_loaded(file):
    path, X = file
    fitted = PCA(n_components=1, memory_limit=1 << 30).fit(path)
    assert "on disk" not in fitted.chosen_because_
    assert np.allclose(fitted.mean_, X.mean(axis=0, dtype=np.float64))


def test_limits_that_make_no_sense_are_refused(file):
    path, _ = file
    with pytest.raises(ValueError, match="memory_limit: `4X` is no size"):
        PCA(n_components=1, memory_limit="4X").fit(path)
    with pytest.raises(ValueError, match="memory_limit = 0"):
        PCA(n_components=1, memory_limit=0).fit(path)
    with pytest.raises(ValueError, match="give that or more"):
        PCA(n_components=1, memory_limit="1M").fit(path)


def test_part_of_a_mapped_file_is_an_array_like_any_other(file):
    path, _X = file
    part = np.load(path, mmap_mode="r")[:5000]
    fitted = PCA(n_components=1, memory_limit="64M").fit(part)
    assert fitted.n_samples_ == 5000
