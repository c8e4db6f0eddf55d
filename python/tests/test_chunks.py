"""Rows in chunks that are read again and again: iterables, functions, arrays on disk, Arrow, lazy frames."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from data import sparse_counts, with_spectrum

from hbpca import PCA

#: Too little for the data below: 40,000 × 128 numbers take 40 MB.
LIMIT = "48M"
N, D = 40_000, 128


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(3)
    return rng.standard_normal((N, D)) * np.linspace(2, 0.2, D) + np.arange(D)


class Again:
    """Chunks of an array; counts how often it is iterated."""

    def __init__(self, X, rows=3_000):
        self.X, self.rows, self.passes = X, rows, 0

    def __iter__(self):
        self.passes += 1
        return (self.X[at : at + self.rows] for at in range(0, self.X.shape[0], self.rows))


def explicit(X, k, *, scale=False):
    """Variances and components by an eigendecomposition of the covariance."""
    X = X.toarray() if sp.issparse(X) else X
    X = X - X.mean(axis=0)
    X = X / X.std(axis=0) if scale else X
    values, vectors = np.linalg.eigh(X.T @ X / (len(X) - 1))
    return values[::-1][:k], vectors[:, ::-1][:, :k].T


def assert_same(fitted, X, *, scale=False):
    values, vectors = explicit(X, fitted.n_components_, scale=scale)
    assert fitted.outcome_ == "converged"
    n = X.shape[0]
    bound = np.array(fitted.certificate_.residuals) * n / (n - 1) + 1e-6 * values
    assert (np.abs(fitted.explained_variance_ - values) <= bound).all()
    cosines = np.abs(np.sum(fitted.components_ * vectors, axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-6)
    assert fitted.n_samples_ == n and fitted.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("solver", ["auto", "krylov", "anchored", "covariance"])
@pytest.mark.parametrize("scale", [None, "std"])
def test_chunks_give_what_the_explicit_computation_gives(X, solver, scale):
    chunks = Again(X)
    fitted = PCA(3, solver=solver, scale=scale, memory_limit=LIMIT, tol=1e-8).fit(chunks)
    assert_same(fitted, X, scale=scale is not None)
    # One pass counts rows and gathers statistics, the others multiply.
    assert chunks.passes == 1 + fitted._fitted.full_passes
    if solver == "auto":
        assert "on disk" in fitted.chosen_because_


def test_what_fits_is_read_once():
    X = with_spectrum(300, 7, 7)
    chunks = Again(X, 50)
    fitted = PCA(2).fit(chunks)
    assert chunks.passes == 1
    np.testing.assert_array_equal(fitted.components_, PCA(2).fit(X).components_)
    np.testing.assert_array_equal(fitted.transform(chunks), fitted.transform(X))
    np.testing.assert_array_equal(PCA(2).fit_transform(chunks), fitted.transform(X))


def test_functions_lists_and_frames_are_sources():
    pd = pytest.importorskip("pandas")
    X = with_spectrum(120, 5, 5)
    parts = [X[:50], X[50:51], X[51:]]
    reference = PCA(2).fit(X)
    for source in (
        lambda: iter(parts),
        lambda: (part for part in parts),
        parts,
        tuple(parts),
        [pd.DataFrame(part) for part in parts],
        [X[:50], X[:0], X[50:]],
    ):
        np.testing.assert_array_equal(PCA(2).fit(source).components_, reference.components_)
    # A list of rows is one array, as ever.
    np.testing.assert_array_equal(PCA(2).fit(list(X)).components_, reference.components_)


def test_whole_numbers_are_doubles():
    X = np.random.default_rng(0).integers(0, 9, (90, 4))
    np.testing.assert_array_equal(PCA(2).fit([X[:40], X[40:]]).components_, PCA(2).fit(X).components_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_chunks_stay_sparse(dtype):
    X = sp.csr_array(sparse_counts(80_000, 300, 0.2, dtype=dtype))
    chunks = Again(X, 2_000)
    for limit in (None, "40M"):
        fitted = PCA(3, memory_limit=limit, solver="krylov", tol=1e-8).fit(chunks)
        assert_same(fitted, X.astype(np.float64))
    assert chunks.passes > 3


def test_a_generator_is_refused_with_the_way_out():
    X = with_spectrum(60, 7, 7)
    for once in ((part for part in (X, X)), map(np.asarray, (X, X)), iter([X])):
        with pytest.raises(TypeError, match="gives its chunks once.*lambda: chunks.*partial_fit"):
            PCA(2).fit(once)


@pytest.mark.parametrize(
    "spoil, text",
    [
        (lambda chunks: [*chunks[:5], chunks[5] + 1e-9, *chunks[6:]], "chunk 5: rows 15000 to 17999 .* have changed"),
        (lambda chunks: chunks[:-1], "chunk 13: the source ends before it"),
        (lambda chunks: [*chunks, chunks[0]], "chunk 14: the source had 14 chunks"),
        (lambda chunks: [chunks[0], chunks[1][:7], *chunks[2:]], "chunk 1 has 7 rows, and had 3000"),
        (lambda chunks: [chunks[1], chunks[0], *chunks[2:]], "chunk 0: rows 0 to 2999 .* have changed"),
    ],
)
def test_other_rows_in_a_later_pass_end_the_fit(X, spoil, text):
    passes = []

    def source():
        passes.append(1)
        chunks = list(Again(X))
        return iter(chunks if len(passes) != 2 else spoil(chunks))

    with pytest.raises(RuntimeError, match=text):
        PCA(3, solver="krylov", memory_limit=LIMIT).fit(source)


@pytest.mark.parametrize(
    "chunks, text",
    [
        ([np.ones((3, 2)), np.ones((3, 4))], "chunk 1 .* 4 columns"),
        ([np.ones((3, 2)), sp.csr_array(np.ones((3, 2)))], "chunk 1 .* sparse"),
        ([np.ones((3, 2)), np.ones((3, 2), dtype=np.float32)], "chunk 1 .* float32"),
        ([np.ones((3, 2)), np.array([[1.0, 2.0], [3.0, np.nan]])], "row 4, column 1 .* NaN"),
    ],
)
def test_chunks_that_do_not_belong_together_are_refused(chunks, text):
    with pytest.raises(ValueError, match=text):
        PCA(1).fit(chunks)
    with pytest.raises(ValueError, match=text):
        PCA(1).fit(lambda: iter(chunks))


def test_nothing_at_all_is_refused():
    with pytest.raises(ValueError, match="no chunk"):
        PCA(1).fit(lambda: iter(()))


def test_an_exception_of_the_source_comes_out_as_it_is(X):
    calls = []

    def source():
        calls.append(threading.get_ident())
        if len(calls) == 3:
            raise OSError("the tape is torn")
        return iter(Again(X))

    with pytest.raises(OSError, match="the tape is torn"):
        PCA(3, solver="krylov", memory_limit=LIMIT).fit(source)
    # Passes are read by a thread of their own.
    assert calls[1] != threading.get_ident()


def test_solvers_that_draw_single_rows_say_so(X):
    with pytest.raises(RuntimeError, match="draws single rows.*choose the solver auto"):
        PCA(1, solver="vr-pca", memory_limit=LIMIT).fit(Again(X))


def test_a_limit_that_is_too_small_names_what_is_needed(X):
    with pytest.raises(ValueError, match="give that or more"):
        PCA(3, memory_limit="4M").fit(Again(X))


def test_weights_of_chunks_in_memory_are_those_of_the_array():
    weights = np.arange(120) % 3
    small = with_spectrum(120, 5, 5)
    fitted = PCA(1).fit([small[:60], small[60:]], sample_weight=weights)
    np.testing.assert_array_equal(fitted.components_, PCA(1).fit(small, sample_weight=weights).components_)


@pytest.mark.parametrize("solver", ["auto", "krylov", "anchored"])
def test_an_integer_weight_of_chunks_is_a_repeated_row(X, solver):
    counts = np.random.default_rng(5).integers(0, 3, N)
    chunks = Again(X)
    fitted = PCA(3, solver=solver, memory_limit=LIMIT, tol=1e-8).fit(chunks, sample_weight=counts)
    assert "on disk" in fitted.chosen_because_ or solver != "auto"
    assert_same_values(fitted, PCA(3, tol=1e-10).fit(np.repeat(X, counts, axis=0)))
    # One pass counts rows, one gathers weighted statistics, the others multiply.
    assert chunks.passes == 2 + fitted._fitted.full_passes
    spoiled = np.where((counts == 0)[:, None], np.nan, X)
    left_out = PCA(3, solver=solver, memory_limit=LIMIT, tol=1e-8).fit(Again(spoiled), sample_weight=counts)
    assert_same_values(left_out, fitted)


def assert_same_values(a, b):
    np.testing.assert_allclose(a.explained_variance_, b.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(a.mean_, b.mean_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(a.components_ * b.components_, axis=1)), 1, atol=1e-6)


@pytest.mark.parametrize("missing", ["drop-rows", "mean", "em"])
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_with_holes_are_the_array_with_holes(X, missing, weighted):
    rng = np.random.default_rng(6)
    holed = X.copy()
    holed[rng.integers(0, N, 3_000), rng.integers(0, D, 3_000)] = np.nan
    weights = rng.integers(0, 3, N) if weighted else None
    choices = {"n_components": 3, "missing": missing, "tol": 1e-8, "em_tol": 1e-9 if missing == "em" else None}
    # em keeps chunks in float64 beside what was read: they must be short.
    chunks = PCA(**choices, solver="krylov", memory_limit=LIMIT).fit(Again(holed, 1_000), sample_weight=weights)
    whole = PCA(**choices).fit(holed, sample_weight=weights)
    assert chunks.outcome_ == "converged"
    assert_same_values(chunks, whole)
    assert chunks.n_samples_ == whole.n_samples_
    for name in ("policy", "entries", "rows", "dropped"):
        assert chunks.missing_values_[name] == whole.missing_values_[name]
    signs = np.sign(np.sum(chunks.components_ * whole.components_, axis=1))
    np.testing.assert_allclose(chunks.transform(Again(holed)) * signs, whole.transform(holed), atol=1e-4)
    # Chunks that fit stay in memory.
    loaded = PCA(**choices).fit(Again(holed), sample_weight=weights)
    np.testing.assert_array_equal(loaded.components_, whole.components_)


def test_weights_of_another_number_are_refused(X):
    for limit in (LIMIT, None):
        for count in (N - 1, N + 1):
            with pytest.raises(ValueError, match=f"{count} given where {N} are needed"):
                PCA(1, memory_limit=limit).fit(Again(X), sample_weight=np.ones(count))


def test_the_certificate_is_that_of_a_file(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    file = PCA(3, solver="krylov", memory_limit=LIMIT).fit(tmp_path / "x.npy")
    chunks = PCA(3, solver="krylov", memory_limit=LIMIT).fit(Again(X))
    assert chunks.certificate_.certainty == file.certificate_.certainty
    assert (np.array(chunks.certificate_.residuals) <= 1e-6 * chunks.explained_variance_).all()


def stored(kind, X, folder):
    if kind == "h5py":
        h5py = pytest.importorskip("h5py")
        file = h5py.File(folder / "x.h5", "w")
        return file.create_dataset("x", data=X, chunks=(1_000, D), compression="gzip", compression_opts=1)
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(store=str(folder / "x.zarr"), shape=X.shape, chunks=(1_000, D), dtype=X.dtype)
    array[:] = X
    return array


@pytest.mark.parametrize("kind", ["h5py", "zarr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_arrays_on_disk(X, kind, dtype, tmp_path):
    X = X.astype(dtype)
    array = stored(kind, X, tmp_path)
    for limit in (LIMIT if dtype != np.float32 else "32M", "1G"):
        fitted = PCA(3, memory_limit=limit).fit(array)
        assert_same(fitted, X.astype(np.float64))
        assert ("on disk" in fitted.chosen_because_) == (limit != "1G")
        assert fitted.components_.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(fitted.transform(array), fitted.transform(np.asarray(X)), rtol=1e-6, atol=1e-5)
    # Single rows can be had.
    assert PCA(1, solver="vr-pca", memory_limit=limit, max_passes=5).fit(array).n_samples_ == N


def test_arrays_on_disk_need_two_dimensions(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file, pytest.raises(ValueError, match="3 dimensions"):
        PCA(1).fit(file.create_dataset("x", data=np.ones((2, 3, 4))))


class Stream:
    """Nothing but an Arrow stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("kind", ["dataset", "stream", "lazy frame"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tables_in_batches(X, kind, dtype, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = X.astype(dtype)
    names = [f"x{j}" for j in range(D)]
    table = pa.table(dict(zip(names, X.T.copy())))
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=3_000)
    if kind == "dataset":
        source = pytest.importorskip("pyarrow.dataset").dataset(tmp_path / "x.parquet")
    elif kind == "stream":
        source = Stream(pa.Table.from_batches(table.to_batches(max_chunksize=3_000)))
    else:
        pl = pytest.importorskip("polars")
        source = pl.scan_parquet(tmp_path / "x.parquet")
        if not hasattr(source, "collect_batches"):
            pytest.skip("this polars has no collect_batches: its lazy frames are collected")
    fitted = PCA(3, memory_limit=LIMIT if dtype == np.float64 else "36M", solver="krylov").fit(source)
    assert_same(fitted, X.astype(np.float64))
    assert fitted.feature_names_in_.tolist() == names
    np.testing.assert_allclose(fitted.transform(source), fitted.transform(X), rtol=1e-6, atol=1e-5)


def test_columns_of_text_and_nulls_are_named(tmp_path):
    pa, ds = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    text = ds.dataset(pa.table({"x": [1.0, 2.0], "town": ["a", "b"]}))
    with pytest.raises(ValueError, match="column 'town' holds string"):
        PCA(1).fit(text)
    null = ds.dataset(pa.table({"x": [1.0, 2.0, 3.0], "y": [1, None, 3]}))
    with pytest.raises(ValueError, match="row 1, column 1 .* NaN"):
        PCA(1).fit(null)
