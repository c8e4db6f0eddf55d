"""What can be handed over, and what is copied of it."""

import numpy as np
import pytest
import scipy.sparse as sp
from data import sparse_counts, with_spectrum

from hbpca import PCA, solve
from hbpca._input import rows_of


@pytest.fixture
def X():
    return with_spectrum(60, 7, 7)


def same_fit(X, reference):
    fitted = PCA(2).fit(X)
    np.testing.assert_array_equal(fitted.components_, reference.components_)
    np.testing.assert_array_equal(fitted.transform(X), reference.transform(np.ascontiguousarray(X)))


def test_every_layout_gives_the_same_bits(X, tmp_path):
    reference = PCA(2).fit(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    mapped = np.memmap(tmp_path / "x", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    wide = np.full((60, 20), np.nan)
    wide[:, 5:12] = X
    every_third = np.full((180, 7), np.nan)
    every_third[::3] = X
    unaligned = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    layouts = {
        "Fortran order": np.asfortranarray(X),
        "read-only": read_only,
        "memory map": np.memmap(tmp_path / "x", dtype=X.dtype, mode="r", shape=X.shape),
        "columns of a larger array": wide[:, 5:12],
        "every third row": every_third[::3],
        "rows backwards, twice": X[::-1].copy()[::-1],
        "columns backwards, twice": X[:, ::-1].copy()[:, ::-1],
        "foreign byte order": X.astype(X.dtype.newbyteorder()),
        "unaligned": unaligned,
        "list of lists": X.tolist(),
    }
    for layout in layouts.values():
        same_fit(layout, reference)


def test_nothing_is_copied_where_the_layout_allows(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    wide = np.zeros((60, 20))
    for free in (X, mapped, X[10:50], wide[:, 5:12], wide[::3, :4], X[:1], X[:, :1], X.astype(np.float32)):
        rows = rows_of(free)
        assert np.shares_memory(rows.values, free)
        assert rows.values.flags.c_contiguous and rows.values.ndim == 1
    assert not np.shares_memory(rows_of(np.asfortranarray(X)).values, X)


def test_compressed_rows_are_borrowed():
    X = sparse_counts(50, 9)
    rows = rows_of(X)
    for borrowed, owner in zip((rows.values, rows.columns, rows.starts), (X.data, X.indices, X.indptr)):
        assert np.shares_memory(borrowed, owner)


def test_64_bit_indices_and_unsorted_duplicates():
    X = sparse_counts(50, 9, 0.3)
    reference = PCA(3).fit(X)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    messy = sp.csr_array(
        (np.r_[X.data, X.data][::-1].copy(), np.r_[X.indices, X.indices][::-1].copy(), [0, 2 * X.nnz]), shape=(1, 9)
    )
    assert not messy.has_canonical_format
    columns = messy.indices.copy()
    np.testing.assert_array_equal(PCA(3).fit(wide).components_, reference.components_)
    twice = PCA(1, center=False).fit(messy).components_
    total = np.asarray(X.sum(axis=0)).ravel()
    np.testing.assert_allclose(twice[0], total / np.linalg.norm(total), atol=1e-12)
    np.testing.assert_array_equal(messy.indices, columns)  # the caller's matrix is as it was


@pytest.mark.parametrize("index", [-1, 9])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_column_indices_outside_are_refused(index, dtype):
    X = sparse_counts(5, 9, 0.3)
    X.indices = X.indices.astype(dtype)
    X.indices[X.indptr[1] - 1 if index > 0 else X.indptr[0]] = index
    X.has_canonical_format = True
    with pytest.raises(ValueError, match="column"):
        solve(X, "krylov")


def test_frames(X):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = [f"x{j}" for j in range(7)]
    reference = PCA(2).fit(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        fitted = PCA(2).fit(frame)
        np.testing.assert_array_equal(fitted.components_, reference.components_)
        assert fitted.feature_names_in_.tolist() == names
        assert fitted.get_feature_names_out().tolist() == ["pca0", "pca1"]
    scores = PCA(2).set_output(transform="polars").fit_transform(pl.DataFrame(X, schema=names))
    assert scores.columns == ["pca0", "pca1"]


@pytest.mark.parametrize(
    "X, text",
    [
        (np.ones(3), "2D array"),
        (np.ones((2, 2, 2)), "dim 3"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((3, 0)), "0 feature"),
        ([["a", "b"]], "could not convert"),
        (np.ones((2, 2)) * 1j, "Complex"),
        ([[1.0, np.nan], [2.0, 3.0]], "row 0, column 1 .* NaN"),
        ([[1.0, 2.0], [np.inf, 3.0]], "row 1, column 0 .* inf"),
        (np.array([[1e200, 1.0], [-1e200, 2.0]]), "squares overflow"),
    ],
)
def test_what_is_no_data_is_refused(X, text):
    with pytest.raises(ValueError, match=text):
        PCA().fit(X)


@pytest.mark.parametrize("bad, text", [(np.nan, "NaN"), (np.inf, "inf")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("whiten", [False, True])
def test_scores_of_what_is_no_data_are_refused(X, bad, text, dtype, whiten):
    # The third column has no variance and the second component hardly any: neither hides the entry.
    X = np.outer(np.arange(60.0), [1, 1, 0]).astype(dtype)
    pca = PCA(2, whiten=whiten).fit(X)
    X[7, 2] = bad
    with pytest.raises(ValueError, match=f"row 7, column 2 .* {text}"):
        pca.transform(X)
    huge = np.full((1, 3), np.finfo(dtype).max)
    assert not np.isnan(pca.transform(huge)).any()  # finite data are never refused, though scores may overflow


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2)])
def test_solve_wants_two_dimensions(shape):
    with pytest.raises(ValueError, match="reshape it to rows and columns"):
        solve(np.ones(shape))
