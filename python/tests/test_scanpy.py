"""`hbpca.scanpy.pca` against `scanpy.pp.pca`, key by key, in memory and backed."""

from __future__ import annotations

import importlib.resources
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
import command_line  # noqa: E402

import hbpca.scanpy  # noqa: E402


@pytest.fixture(scope="module")
def pbmc():
    """700 cells and 765 genes, log-normalised and scaled, with highly variable genes; shipped with scanpy."""
    with importlib.resources.as_file(importlib.resources.files("scanpy") / "datasets/10x_pbmc68k_reduced.h5ad") as path:
        return anndata.read_h5ad(path)


def counts(n=600, d=300, seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.gamma(0.3, 2.0, (5, d))
    mean = kinds[rng.integers(0, 5, n)] * rng.uniform(0.3, 3, (n, 1))
    X = sp.csr_matrix(rng.poisson(mean).astype(np.float32))
    adata = anndata.AnnData(X)
    adata.var["chosen"] = np.arange(d) % 3 != 0
    adata.layers["twice"] = X * 2
    return adata


def compare(ours, theirs, *, key=None, n_sure=10):
    """Every key that scanpy sets, with the same shapes, types and values."""
    obsm, varm, uns = ("X_pca", "PCs", "pca") if key is None else (key,) * 3
    assert ours.obsm[obsm].dtype == theirs.obsm[obsm].dtype
    assert ours.obsm[obsm].shape == theirs.obsm[obsm].shape
    assert ours.varm[varm].dtype == theirs.varm[varm].dtype
    mine, other = ours.uns[uns], theirs.uns[uns]
    assert set(other) <= set(mine)
    for name, value in other["params"].items():
        np.testing.assert_array_equal(mine["params"][name], value)
    for name in ("variance", "variance_ratio"):
        assert mine[name].dtype == other[name].dtype and mine[name].shape == other[name].shape
        np.testing.assert_allclose(mine[name], other[name], rtol=2e-5)
    # Components whose eigenvalues are apart, up to what float32 holds.
    gaps = -np.diff(other["variance"]) / other["variance"][:-1]
    apart = np.minimum(np.r_[1, gaps], np.r_[gaps, 1]) > 0.02
    assert apart.sum() >= min(3, n_sure)
    cosines = np.abs(np.sum(ours.varm[varm] * theirs.varm[varm], axis=0))
    np.testing.assert_allclose(cosines[apart], 1, atol=1e-5)
    signs = np.sign(np.sum(ours.varm[varm] * theirs.varm[varm], axis=0))
    largest = np.abs(theirs.obsm[obsm]).max(axis=0)
    np.testing.assert_allclose(
        (ours.obsm[obsm] * signs / largest)[:, apart], (theirs.obsm[obsm] / largest)[:, apart], atol=2e-3
    )


def both(adata, **arguments):
    ours, theirs = adata.copy(), adata.copy()
    assert hbpca.scanpy.pca(ours, tol=1e-9, **arguments) is None
    sc.pp.pca(theirs, **arguments)
    return ours, theirs


def test_scanpys_own_data_gives_scanpys_own_results(pbmc):
    for arguments in ({}, {"n_comps": 20}, {"mask_var": None, "n_comps": 15}):
        ours, theirs = both(pbmc, **arguments)
        compare(ours, theirs)
        assert ours.uns["pca"]["hbpca"]["outcome"] == "converged"
    assert ours.obsm["X_pca"].shape == (700, 15)


def test_arguments_mean_what_they_mean_in_scanpy():
    adata = counts()
    for arguments in (
        {},
        {"n_comps": 7, "layer": "twice"},
        {"n_comps": 7, "mask_var": "chosen"},
        {"n_comps": 7, "mask_var": adata.var["chosen"].to_numpy()},
        {"n_comps": 7, "key_added": "mine"},
        {"n_comps": 7, "svd_solver": "arpack", "random_state": 3},
    ):
        ours, theirs = both(adata, **arguments)
        compare(ours, theirs, key=arguments.get("key_added"))
    assert "highly_variable" not in adata.var
    masked = both(adata, n_comps=7, mask_var="chosen")[0]
    assert (masked.varm["PCs"][~adata.var["chosen"].to_numpy()] == 0).all()


def test_few_cells_have_one_component_less():
    ours, theirs = both(counts(30, 300))
    compare(ours, theirs, n_sure=3)
    assert ours.obsm["X_pca"].shape == (30, 29)


def test_copies_and_arrays():
    adata = counts()
    changed = hbpca.scanpy.pca(adata, 5, copy=True)
    assert "X_pca" not in adata.obsm and changed.obsm["X_pca"].shape == (600, 5)
    scores = hbpca.scanpy.pca(adata.X, 5)
    np.testing.assert_allclose(scores, changed.obsm["X_pca"], rtol=1e-4, atol=1e-3)
    scores, components, ratio, variance = hbpca.scanpy.pca(adata.X.toarray(), 5, return_info=True)
    assert components.shape == (5, 300) and len(ratio) == len(variance) == 5


def test_without_centring():
    ours, theirs = both(counts(), n_comps=5, zero_center=False, svd_solver="arpack")
    compare(ours, theirs, n_sure=3)


def prepared_by_scanpy(adata, *, mask=None, scale=False):
    adata = adata.copy()
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    adata = adata if mask is None else adata[:, mask].copy()
    if scale:
        sc.pp.scale(adata)
    return adata


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("storage", ["csr", "csc", "dense", "backed csr", "backed dense"])
def test_counts_are_prepared_on_the_fly(scale, storage, tmp_path):
    adata = counts(900, 200, seed=4)
    adata.X[5] = 0  # a cell without counts
    theirs = prepared_by_scanpy(adata, scale=scale)
    sc.pp.pca(theirs, n_comps=6)
    if "csc" in storage:
        adata.X = adata.X.tocsc()
    if "dense" in storage:
        adata.X = adata.X.toarray()
    before = adata.X.copy()
    given = adata
    if "backed" in storage:
        adata.write_h5ad(tmp_path / "x.h5ad")
        given = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    hbpca.scanpy.pca(given, 6, normalize=1e4, log1p=True, scale=scale, tol=1e-9)
    np.testing.assert_allclose(given.uns["pca"]["variance"], theirs.uns["pca"]["variance"], rtol=2e-5)
    np.testing.assert_allclose(given.uns["pca"]["variance_ratio"], theirs.uns["pca"]["variance_ratio"], rtol=2e-5)
    cosines = np.abs(np.sum(given.varm["PCs"] * theirs.varm["PCs"], axis=0))
    np.testing.assert_allclose(cosines[:4], 1, atol=1e-4)
    scale_of = np.abs(theirs.obsm["X_pca"]).max(axis=0)
    difference = np.abs(np.abs(given.obsm["X_pca"]) - np.abs(theirs.obsm["X_pca"])) / scale_of
    assert difference[:, :4].max() < 1e-2
    assert abs(adata.X - before).max() == 0  # nothing was changed
    assert given.uns["pca"]["params"]["normalize"] == 1e4


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_backed_data_is_read_in_chunks_where_it_does_not_fit(kind, compression, tmp_path):
    adata = counts(24_000, 200, seed=1)
    if kind == "dense":
        adata.X = adata.X.toarray()
    adata.write_h5ad(tmp_path / "x.h5ad", compression=compression)
    theirs = adata.copy()
    sc.pp.pca(theirs, n_comps=5, mask_var="chosen")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    with pytest.raises(NotImplementedError):
        sc.pp.pca(backed, n_comps=5)  # what scanpy says to that
    hbpca.scanpy.pca(backed, 5, mask_var="chosen", memory_limit="32M", tol=1e-9)
    compare(backed, theirs, n_sure=3)


def test_backed_columns_are_refused_with_the_way_out(tmp_path):
    adata = counts()
    adata.X = adata.X.tocsc()
    adata.write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    with pytest.raises(ValueError, match="stored by columns.*to_memory"):
        hbpca.scanpy.pca(backed, 5)


def test_the_guide_runs(tmp_path, monkeypatch):
    guide = Path(__file__).resolve().parents[2] / "docs" / "guide" / "single-cell.md"
    monkeypatch.chdir(tmp_path)
    counts().write_h5ad("cells.h5ad")
    counts().write_h5ad("counts.h5ad", compression="gzip")
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        names = {"adata": counts()}
        exec(compile(block, guide.name, "exec"), names)
        assert names["adata"].obsm["X_pca"].shape == (600, 50)


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"mask_var": "nothing"}, "has no such column"),
        ({"mask_var": np.ones(3, dtype=bool)}, "one boolean for each of the 300 genes"),
        ({"mask_var": np.zeros(300, dtype=bool)}, "leaves no gene"),
        ({"mask_var": None, "use_highly_variable": True}, "are the same"),
        ({"n_comps": 301}, "301"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        hbpca.scanpy.pca(counts(), **arguments)


def printed(*arguments):
    """What `hbpca fit …` says in JSON."""
    done = subprocess.run([command_line.find(), "fit", *map(str, arguments), "--json", "-q"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@command_line.needed
def test_the_command_line_reads_scanpys_own_data(pbmc):
    path = importlib.resources.files("scanpy") / "datasets/10x_pbmc68k_reduced.h5ad"
    for mask in (None, "highly_variable"):
        theirs = pbmc.copy()
        hbpca.scanpy.pca(pbmc, n_comps=20, mask_var=mask)
        sc.pp.pca(theirs, n_comps=20, mask_var=mask)
        fit = printed(path, "-k", 20, *([] if mask is None else ["--mask", mask]))
        variance = np.array(fit["eigenvalues"]) * 700 / 699
        np.testing.assert_allclose(variance, theirs.uns["pca"]["variance"], rtol=2e-5)
        np.testing.assert_allclose(variance, pbmc.uns["pca"]["variance"], rtol=1e-6)


@command_line.needed
@pytest.mark.parametrize("storage", ["csr gzip", "csr lzf", "csc gzip", "dense gzip", "csr None", "dense lzf"])
def test_the_command_line_prepares_counts_as_scanpy_does(storage, tmp_path):
    adata = counts(900, 200, seed=4)
    adata.X[5] = 0
    chosen = adata.var["chosen"].to_numpy()
    theirs = prepared_by_scanpy(adata, mask=chosen)
    sc.pp.pca(theirs, n_comps=6)
    kind, compression = storage.split()
    adata.X = {"csr": adata.X, "csc": adata.X.tocsc(), "dense": adata.X.toarray()}[kind]
    path = tmp_path / "x.h5ad"
    adata.write_h5ad(path, compression=None if compression == "None" else compression)
    fit = printed(path, "-k", 6, "--mask", "chosen", "--normalize", "1e4", "--log1p")
    np.testing.assert_allclose(np.array(fit["eigenvalues"]) * 900 / 899, theirs.uns["pca"]["variance"], rtol=2e-5)
    assert fit["d"] == chosen.sum()
