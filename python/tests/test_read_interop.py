"""Files that other libraries write are read as those libraries read them: every format, type and compression."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import hbpca


def zstd(content: bytes) -> bytes:
    return pytest.importorskip("pyarrow").compress(content, codec="zstd", asbytes=True)


PLAIN = pytest.param("", lambda content: content, id="plain")
PACKED = [
    pytest.param(".gz", gzip.compress, id="gzip"),
    pytest.param(".bz2", bz2.compress, id="bzip2"),
    pytest.param(".xz", lzma.compress, id="xz"),
    pytest.param(".zst", zstd, id="zstd"),
]
compressions = pytest.mark.parametrize(("extension", "compress"), [PLAIN, *PACKED])


@pytest.fixture
def folder(tmp_path, extension, compress):
    """Reads what `write(path)` writes, compressed, and by content alone as well as by name."""

    def read(name, write, **options):
        path = tmp_path / name
        write(path)
        content = compress(path.read_bytes())
        named, nameless = tmp_path / (name + extension), tmp_path / "nameless"
        named.write_bytes(content)
        nameless.write_bytes(content)
        data = hbpca.read(named, **options)
        found = hbpca.read(nameless, **options)
        same(found.X, data.X)
        return data

    return read


@pytest.fixture
def dense():
    return np.random.default_rng(0).normal(scale=40, size=(53, 7)).round(3)


@pytest.fixture
def sparse():
    X = sp.random(53, 9, 0.3, random_state=1, format="lil")
    X[0, 0] = 1.0  # shows where indices start
    X[52, 8] = -1.5e-7  # neither the last row nor the last column is empty
    return X.tocsr()


def same(found, expected):
    """The same numbers exactly, and sparse where the other is."""
    assert sp.issparse(found) == sp.issparse(expected)
    if sp.issparse(expected):
        assert (found.shape, found.nnz) == (expected.shape, expected.nnz)
        found, expected = found.toarray(), expected.toarray()
    np.testing.assert_array_equal(found, expected)


DTYPES = ["<f4", "<f8", ">f4", ">f8", "i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u4", "<i8", ">u8", "?"]


@compressions
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_arrays(dense, folder, dtype, order):
    X = np.abs(dense).astype(dtype, order=order)
    data = folder("x.npy", lambda path: np.save(path, X))
    same(data.X, X.astype(data.X.dtype))
    assert data.X.dtype == (np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_numpy_versions(dense, tmp_path, version):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, dense, version=version)
    same(hbpca.read(tmp_path / "x.npy").X, np.load(tmp_path / "x.npy"))


@compressions
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy_archives_of_one_array(dense, folder, save):
    same(folder("x.npz", lambda path: save(path, dense)).X, dense)


@compressions
@pytest.mark.parametrize("fmt", ["%.18e", "%g", "%.3f"])
def test_numpy_text(dense, folder, fmt, tmp_path):
    same(folder("x.txt", lambda path: np.savetxt(path, dense, fmt=fmt), format="csv").X, np.loadtxt(tmp_path / "x.txt"))


@compressions
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("packed", [True, False], ids=["deflated", "stored"])
def test_scipy_archives(sparse, folder, tmp_path, layout, kind, packed):
    X = getattr(sp, f"{layout}_{kind}")(sparse)
    data = folder("x.npz", lambda path: sp.save_npz(path, X, compressed=packed))
    same(data.X, sp.load_npz(tmp_path / "x.npz").tocsr())


@compressions
@pytest.mark.parametrize(
    ("field", "symmetry"),
    # A pattern has no signs, hence no skew symmetry.
    [(f, s) for f in ("real", "integer", "pattern") for s in ("general", "symmetric", "skew-symmetric")][:-1],
)
def test_matrix_market_coordinates(sparse, folder, tmp_path, field, symmetry):
    X = sparse[:9].tocoo()
    if field == "integer":
        X.data = np.ceil(10 * X.data)
    if field == "pattern":
        X.data[:] = 1
    if symmetry != "general":
        lower = sp.tril(X, -1)
        X = lower - lower.T if symmetry == "skew-symmetric" else lower + lower.T + sp.eye(9)
    if field == "integer":
        X = sp.coo_matrix(X).astype(int)
    data = folder("x.mtx", lambda path: scipy.io.mmwrite(path, X, field=field, symmetry=symmetry))
    same(data.X, scipy.io.mmread(tmp_path / "x.mtx").tocsr())


@compressions
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_matrix_market_arrays(dense, folder, tmp_path, symmetry):
    X = {"general": dense, "symmetric": dense[:7] + dense[:7].T, "skew-symmetric": dense[:7] - dense[:7].T}[symmetry]
    data = folder("x.mtx", lambda path: scipy.io.mmwrite(path, X, symmetry=symmetry))
    same(data.X, scipy.io.mmread(tmp_path / "x.mtx"))


@pytest.mark.parametrize("order", ["by rows", "by columns", "shuffled"])
def test_long_matrix_market_files_in_any_order(tmp_path, order):
    """Longer than what is parsed at once, with numbers of every length."""
    rng = np.random.default_rng(5)
    X = sp.random(3000, 4000, 0.01, random_state=5, format="coo")
    X.data = np.concatenate([rng.integers(-9, 10**6, X.nnz // 2), rng.normal(size=X.nnz - X.nnz // 2)])
    keys = {"by rows": (X.col, X.row), "by columns": (X.row, X.col), "shuffled": (rng.random(X.nnz),)}[order]
    shuffle = np.lexsort(keys)
    X = sp.coo_matrix((X.data[shuffle], (X.row[shuffle], X.col[shuffle])), shape=X.shape)
    scipy.io.mmwrite(tmp_path / "x.mtx", X)
    same(hbpca.read(tmp_path / "x.mtx").X, scipy.io.mmread(tmp_path / "x.mtx").tocsr())


@compressions
@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("extras", [{}, {"comment": "a remark"}, {"query_id": np.arange(53)}], ids=["", "comment", "qid"])
def test_scikit_learn_svmlight(sparse, folder, tmp_path, zero_based, extras):
    labels = np.arange(53) % 3 - 1.5

    def write(path):
        dump_svmlight_file(sparse, labels, str(path), zero_based=zero_based, **extras)

    data = folder("x.svm", write)
    X, y = load_svmlight_file(str(tmp_path / "x.svm"), zero_based=zero_based)
    same(data.X, X)
    np.testing.assert_array_equal(data.labels, y)


@compressions
@pytest.mark.parametrize("options", [{}, {"sep": "\t"}, {"sep": ";"}, {"sep": "|"}, {"quoting": 1}, {"lineterminator": "\r\n"}])
def test_pandas_text(dense, folder, tmp_path, options):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(dense, columns=[f"column, {j}" if options.get("quoting") else f"c{j}" for j in range(7)])
    frame["whole"] = np.arange(53)
    name = "x.tsv" if options.get("sep") == "\t" else "x.csv"
    data = folder(name, lambda path: frame.to_csv(path, index=False, **options), label_column="whole")
    again = pandas.read_csv(tmp_path / name, sep=options.get("sep", ","))
    same(data.X, again.drop(columns="whole").to_numpy())
    np.testing.assert_array_equal(data.labels, again["whole"])
    assert data.column_names == list(frame.columns[:7])


@pytest.mark.parametrize("codec", ["snappy", "gzip", "zstd", "brotli", "lz4", None])
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_parquet(dense, tmp_path, codec, page):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(dense, columns=list("abcdefg"))
    frame["single"], frame["whole"] = frame["a"].astype("f4"), np.arange(53) % 4
    frame["small"], frame["flag"] = frame["whole"].astype("u1"), frame["whole"] > 1
    path = tmp_path / "x.parquet"
    frame.to_parquet(path, compression=codec, row_group_size=13, data_page_version=page, index=False)
    data = hbpca.read(path)
    same(data.X, pandas.read_parquet(path).to_numpy(float))
    assert data.column_names == list(frame.columns)
    same(hbpca.read(path, columns=["whole", "b"]).X, frame[["whole", "b"]].to_numpy(float))


@pytest.mark.parametrize(("extension", "compress"), PACKED)
def test_parquet_may_be_compressed_again(dense, folder):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(dense, columns=list("abcdefg"))
    same(folder("x.parquet", lambda path: frame.to_parquet(path)).X, dense)
