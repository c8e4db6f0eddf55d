"""The parts of a chunk folder are files that NumPy and SciPy open."""

import json
import subprocess
import zlib

import command_line
import numpy as np
import pytest
import scipy.sparse as sp

import hbpca

pytestmark = command_line.needed


def converted(source, target, *flags):
    subprocess.run([command_line.find(), "convert", str(source), str(target), *flags], check=True)
    manifest = json.loads((target / "manifest.json").read_text())
    for part in manifest["parts"]:
        content = (target / part["file"]).read_bytes()
        assert (len(content), zlib.crc32(content)) == (part["bytes"], part["crc32"])
    return manifest, [target / part["file"] for part in manifest["parts"]]


def rows(sparse):
    if sparse:
        X = sp.random(400_000, 60, 0.1, random_state=0, format="csr", dtype=np.float64)
        X.data = X.data.round(2) + 1
        return X
    return np.random.default_rng(1).normal(size=(60_000, 20)).round(4)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_parts_are_opened_by_numpy_and_scipy(tmp_path, sparse):
    X = rows(sparse)
    name, save, load, stack = (
        ("x.npz", sp.save_npz, sp.load_npz, sp.vstack) if sparse else ("x.npy", np.save, np.load, np.vstack)
    )
    save(tmp_path / name, X)
    manifest, parts = converted(tmp_path / name, tmp_path / "x.chunks", "--part-size", "2")
    assert len(parts) > 3
    found = stack([load(part) for part in parts])
    dense = (lambda A: A.toarray()) if sparse else (lambda A: A)
    assert found.dtype == X.dtype and (manifest["rows"], manifest["columns"]) == X.shape
    np.testing.assert_array_equal(dense(found), dense(X))
    np.testing.assert_array_equal(dense(hbpca.read(tmp_path / "x.chunks").X), dense(X))

    mean, variance, low, high = np.load(tmp_path / "x.chunks" / "statistics.npy")
    A = dense(X)
    np.testing.assert_array_equal([low, high], [A.min(axis=0), A.max(axis=0)])
    # A sum of n terms, each at most the largest: n roundings at worst, √n in truth.
    bound = len(A) ** 0.5 * np.finfo(float).eps * np.abs(A).max()
    np.testing.assert_allclose(mean, A.mean(axis=0), rtol=0, atol=bound)
    np.testing.assert_allclose(variance, A.var(axis=0), rtol=0, atol=4 * bound * np.abs(A).max())


def test_a_shuffle_is_a_permutation(tmp_path):
    X = np.arange(20_000.0).reshape(-1, 2)
    np.save(tmp_path / "x.npy", X)
    manifest, parts = converted(tmp_path / "x.npy", tmp_path / "x.chunks", "--shuffle", "3")
    found = np.vstack([np.load(part) for part in parts])
    assert manifest["shuffle_seed"] == 3 and not np.array_equal(found, X)
    np.testing.assert_array_equal(found[np.argsort(found[:, 0])], X)
