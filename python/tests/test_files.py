"""Readers and model files, shared with the command line."""

import json
import struct
import subprocess

import command_line
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from data import sparse_counts, with_spectrum

import hbpca
from hbpca import PCA


@pytest.fixture
def X():
    return with_spectrum(50, 6, 6)


@pytest.mark.parametrize("params", [{}, {"scale": "std"}, {"center": False}, {"center": False, "scale": "minmax"}])
def test_models_come_back_bit_for_bit(X, params, tmp_path):
    pca = PCA(3, **params).fit(X)
    pca.save(tmp_path / "model.safetensors")
    loaded = hbpca.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.transform(X), pca.transform(X))
    np.testing.assert_array_equal(loaded.explained_variance_, pca.explained_variance_)
    assert (loaded.center, loaded.scale) == (pca.center, pca.scale)
    assert loaded.history_ == pca.history_ and str(loaded.certificate_) == str(pca.certificate_)
    assert loaded.noise_variance_ == pca.noise_variance_
    loaded.fit(X)
    np.testing.assert_array_equal(loaded.components_, pca.components_)


def test_float32_models_are_saved_as_they_were_found(X, tmp_path):
    pca = PCA(2).fit(X.astype(np.float32))
    pca.save(str(tmp_path / "model.safetensors"))
    loss = hbpca.load(str(tmp_path / "model.safetensors")).components_
    assert np.abs(loss @ loss.T - np.eye(2)).max() < 1e-12


def test_the_file_is_plain_safetensors(X, tmp_path):
    pca = PCA(2).fit(X)
    pca.save(tmp_path / "m.safetensors")
    content = (tmp_path / "m.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = json.loads(content[8 : 8 + length])
    begin, end = tensors["components"]["data_offsets"]
    components = np.frombuffer(content[8 + length :][begin:end]).reshape(tensors["components"]["shape"])
    np.testing.assert_array_equal(components, pca.components_)


@command_line.needed
def test_models_travel_to_the_command_line_and_back(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    PCA(2).fit(X).save(tmp_path / "python.safetensors")
    run = [command_line.find(), "check", str(tmp_path / "python.safetensors"), str(tmp_path / "x.npy")]
    assert subprocess.run(run, capture_output=True, check=False).returncode == 0
    run = [command_line.find(), "fit", str(tmp_path / "x.npy"), "-k", "2", "-o", str(tmp_path / "cli.safetensors")]
    subprocess.run(run, capture_output=True, check=True)
    loaded = hbpca.load(tmp_path / "cli.safetensors")
    np.testing.assert_allclose(loaded.components_, PCA(2).fit(X).components_, atol=1e-6)


def test_names_go_through_model_files(X, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    PCA(2).fit(frame).save(tmp_path / "m.safetensors")
    loaded = hbpca.load(tmp_path / "m.safetensors")
    assert list(loaded.feature_names_in_) == list("abcdef")
    np.testing.assert_array_equal(loaded.transform(frame), PCA(2).fit(frame).transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[list("fedcba")])
    with pytest.warns(UserWarning, match="valid feature names"):
        loaded.transform(X)
    PCA(2).fit(X).save(tmp_path / "m.safetensors")
    assert not hasattr(hbpca.load(tmp_path / "m.safetensors"), "feature_names_in_")


def test_a_fit_of_a_file_has_its_names(X, tmp_path):
    header = ",".join("abcdef")
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header=header, comments="", fmt="%.17g")
    np.save(tmp_path / "x.npy", X)
    pca = PCA(2).fit(tmp_path / "x.csv")
    assert list(pca.feature_names_in_) == list("abcdef") and pca.feature_names_in_.dtype == object
    pca.save(tmp_path / "m.safetensors")
    assert list(hbpca.load(tmp_path / "m.safetensors").feature_names_in_) == list("abcdef")
    assert not hasattr(pca.fit(tmp_path / "x.npy"), "feature_names_in_")
    (tmp_path / "index.csv").write_text(",a,b\n0,1.5,3\n1,2.5,1\n2,0.5,1\n")
    with pytest.warns(UserWarning, match="left out as an index"):
        pca = PCA(1).fit(tmp_path / "index.csv")
    assert list(pca.feature_names_in_) == ["a", "b"]


def test_wide_and_foreign_tables(tmp_path):
    d = 30_000
    names = [f"gene_{j}" for j in range(d)]
    rows = [",".join(f"{(7 * j + i) % 23}.5" for j in range(d)) for i in range(2)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    data = hbpca.read(tmp_path / "wide.csv")
    assert data.X.shape == (2, d) and data.column_names == names
    (tmp_path / "de.csv").write_bytes("größe;b\n1.000,5;2\n3;4\n".encode("latin1"))
    data = hbpca.read(tmp_path / "de.csv", decimal=",", thousands=".", encoding="latin1")
    assert data.column_names == ["größe", "b"]
    np.testing.assert_array_equal(data.X, [[1000.5, 2], [3, 4]])
    (tmp_path / "index.csv").write_text(",a\n0,1.5\n1,2.5\n")
    with pytest.warns(UserWarning, match="left out as an index"):
        assert hbpca.read(tmp_path / "index.csv").column_names == ["a"]


def test_files_that_are_no_models_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError) as refused:
        hbpca.load(tmp_path / "nothing")
    assert refused.value.filename == str(tmp_path / "nothing")
    (tmp_path / "text").write_text("no model")
    with pytest.raises(ValueError, match="text.*safetensors"):
        hbpca.load(tmp_path / "text")
    with pytest.raises(ValueError, match="safetensors"):
        hbpca._hbpca.Fitted.from_bytes(b"no model")


def test_models_are_not_written_where_they_cannot_be(X, tmp_path):
    with pytest.raises(OSError):
        PCA(1).fit(X).save(tmp_path / "no" / "folder")


def test_dense_files(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(hbpca.read(tmp_path / "x.npy").X, X)
    assert hbpca.read(tmp_path / "x.npy", dtype=np.float32).X.dtype == np.float32
    header = ",".join("abcdef")
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header=header, comments="", fmt="%.17g")
    data = hbpca.read(tmp_path / "x.csv", label_column="c")
    assert data.column_names == list("abdef")
    np.testing.assert_array_equal(data.X, np.delete(X, 2, axis=1))
    np.testing.assert_array_equal(data.labels, X[:, 2])
    np.testing.assert_array_equal(hbpca.read(tmp_path / "x.csv", columns=["b", -1]).X, X[:, [1, 5]])


def test_sparse_files(tmp_path):
    X = sparse_counts(40, 8, 0.3)
    sp.save_npz(tmp_path / "x.npz", sp.csr_matrix(X))
    scipy.io.mmwrite(tmp_path / "x.mtx", sp.coo_matrix(X))
    for name in ("x.npz", "x.mtx"):
        read = hbpca.read(tmp_path / name).X
        assert sp.issparse(read) and (read != X).nnz == 0
        assert read.indices.dtype == np.int32
    (tmp_path / "x.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    data = hbpca.read(tmp_path / "x.svm", n_columns=4)
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 2, 0], [0, 1, 0, 0]])
    np.testing.assert_array_equal(data.labels, [1, -1])


def test_data_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        hbpca.read(tmp_path / "nothing.csv")
    (tmp_path / "x.csv").write_text("1,2\n3,x\n")
    with pytest.raises(ValueError, match="x.csv:2:3"):
        hbpca.read(tmp_path / "x.csv")
    for options, text in [
        ({"format": "xls"}, "choose one of"),
        ({"dtype": np.int8}, "f32"),
        ({"label_column": "z"}, "no column"),
    ]:
        (tmp_path / "y.csv").write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match=text):
            hbpca.read(tmp_path / "y.csv", **options)
