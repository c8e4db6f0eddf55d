"""Genotypes of PLINK against the explicit computation, and against plink2 where it is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from pathlib import Path

import command_line
import numpy as np
import pytest

from hbpca import PCA, load, read

N, D = 300, 900


def dosages(seed=0, missing=0.03):
    """Three populations; NaN is missing."""
    rng = np.random.default_rng(seed)
    ancestral = rng.uniform(0.1, 0.9, D)
    frequency = np.clip(ancestral + rng.normal(0, 0.12, (3, D)), 0.02, 0.98)
    X = rng.binomial(2, frequency[np.arange(N) % 3]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def store(path, X, *, alleles=None):
    """Writes a .bed with its .bim and .fam."""
    n, d = X.shape
    codes = np.select([X == 2, X == 1, X == 0], [0, 2, 3], 1).astype(np.uint8)
    codes = np.vstack([codes, np.zeros((-n % 4, d), dtype=np.uint8)]).T.reshape(d, -1, 4)
    packed = (codes << np.array([0, 2, 4, 6], dtype=np.uint8)).sum(axis=2, dtype=np.uint8)
    path.write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    alleles = [("A", "G")] * d if alleles is None else alleles
    lines = [f"1\trs{j}\t0\t{1000 * (j + 1)}\t{a}\t{b}\n" for j, (a, b) in enumerate(alleles)]
    path.with_suffix(".bim").write_text("".join(lines))
    path.with_suffix(".fam").write_text("".join(f"f{i}\ti{i}\t0\t0\t0\t-9\n" for i in range(n)))
    return path


def standardised(X, *, hwe=True):
    """Centred, scaled, and 0 where something is missing."""
    mean = np.nanmean(X, axis=0)
    scale = np.sqrt(mean * (1 - mean / 2)) if hwe else np.ones(X.shape[1])
    return np.nan_to_num((X - mean) / np.where(scale > 0, scale, 1))


@pytest.mark.parametrize("scale", ["hwe", None, "std"])
@pytest.mark.parametrize("solver", ["auto", "covariance"])
def test_a_fit_is_that_of_the_explicit_computation(tmp_path, scale, solver):
    X = dosages()
    path = store(tmp_path / "x.bed", X)
    A = standardised(X, hwe=scale == "hwe")
    A = A / A.std(axis=0) if scale == "std" else A
    left, values, right = np.linalg.svd(A, full_matrices=False)
    pca = PCA(4, scale=scale, solver=solver, tol=1e-10).fit(path)
    np.testing.assert_allclose(pca.singular_values_, values[:4], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(pca.components_[:2] * right[:2], axis=1)), 1, atol=1e-9)
    np.testing.assert_allclose(np.abs(pca.transform(path)[:, :2]), np.abs(left * values)[:, :2], atol=1e-6)
    assert pca.feature_names_in_[3] == "rs3_A_G"
    assert pca.outcome_ == "converged"


def test_other_samples_are_projected_with_the_first_ones_frequencies(tmp_path):
    X = dosages()
    pca = PCA(2, scale="hwe", whiten=True).fit(store(tmp_path / "x.bed", X))
    mean = np.nanmean(X, axis=0)
    Y = dosages(seed=7)[:50]
    want = np.nan_to_num((Y - mean) / np.sqrt(mean * (1 - mean / 2))) @ pca.components_.T / np.sqrt(pca.explained_variance_)
    order = np.random.default_rng(1).permutation(D)
    turned = np.arange(D) % 2 == 0
    Z = np.where(turned, 2 - Y, Y)
    alleles = [("G", "A") if flip else ("T", "C") for flip in turned]  # T/C is A/G on the other strand
    path = store(tmp_path / "y.bed", Z[:, order], alleles=[alleles[j] for j in order])
    lines = path.with_suffix(".bim").read_text().splitlines()
    names = [line.split("\t") for line in lines]
    for fields, j in zip(names, order):
        fields[1] = f"rs{j}"
    path.with_suffix(".bim").write_text("".join("\t".join(fields) + "\n" for fields in names))
    np.testing.assert_allclose(pca.transform(path), want, atol=1e-9)
    pca.save(tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    loaded.whiten = True
    np.testing.assert_allclose(loaded.transform(path), want, atol=1e-9)


def test_genotypes_are_read_as_dosages(tmp_path):
    X = dosages()
    read_back, _, names = read(store(tmp_path / "x.bed", X))
    known = ~np.isnan(X)
    np.testing.assert_array_equal(read_back[known], X[known])
    np.testing.assert_allclose(read_back, np.where(known, X, np.nanmean(X, axis=0)))
    assert names[:2] == ["rs0_A_G", "rs1_A_G"]


def test_damaged_files_are_refused(tmp_path):
    path = store(tmp_path / "x.bed", dosages())
    whole = path.read_bytes()
    for damaged, text in ((whole[:-1], "cut off"), (b"\x6c\x1b\x00" + whole[3:], "sample after sample"), (b"abc", "no PLINK")):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=text):
            PCA(2, scale="hwe").fit(path)
    with pytest.raises(ValueError, match="scale of genotypes alone"):
        PCA(1, scale="hwe").fit(np.random.default_rng(0).random((9, 3)))


@pytest.mark.parametrize("scale", ["hwe", None])
def test_weights_are_repeated_samples(tmp_path, scale):
    X = dosages()
    counts = np.random.default_rng(3).integers(0, 4, N)
    weighted = PCA(3, scale=scale, tol=1e-10).fit(store(tmp_path / "x.bed", X), sample_weight=counts)
    often = PCA(3, scale=scale, tol=1e-10).fit(store(tmp_path / "often.bed", np.repeat(X, counts, axis=0)))
    np.testing.assert_allclose(weighted.explained_variance_, often.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(weighted.mean_, often.mean_, rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(weighted.components_ * often.components_, axis=1))[:2], 1, atol=1e-9)
    left = PCA(3, scale=scale, tol=1e-10).fit(store(tmp_path / "left.bed", X[counts > 0]), sample_weight=counts[counts > 0])
    np.testing.assert_allclose(weighted.explained_variance_, left.explained_variance_, rtol=1e-9)


@pytest.mark.parametrize("missing", ["drop-rows", "mean", "em"])
def test_what_is_missing_is_that_of_the_dosages(tmp_path, missing):
    X = dosages(missing=0.05)
    X[::2] = np.nan_to_num(X[::2], nan=1.0)
    path = store(tmp_path / "x.bed", X)
    choices = {"n_components": 2, "missing": missing, "tol": 1e-9, "max_passes": 1e6}
    choices["em_tol"] = 1e-9 if missing == "em" else None
    packed, dense = PCA(**choices).fit(path), PCA(**choices).fit(X)
    np.testing.assert_allclose(packed.explained_variance_, dense.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(np.abs(np.sum(packed.components_ * dense.components_, axis=1)), 1, atol=1e-7)
    for name in ("policy", "entries", "rows", "dropped"):
        assert packed.missing_values_[name] == dense.missing_values_[name]
    np.testing.assert_allclose(packed.transform(path), dense.transform(X), atol=1e-4)
    packed.save(tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    assert loaded.missing == missing
    np.testing.assert_allclose(loaded.transform(path), packed.transform(path), atol=1e-12)


def test_genotypes_that_are_missing_are_the_mean_by_default(tmp_path):
    path = store(tmp_path / "x.bed", dosages())
    by_default = PCA(2).fit(path)
    assert by_default.missing_values_["policy"] == "mean"
    asked_for = PCA(2, missing="mean").fit(path)
    np.testing.assert_array_equal(by_default.components_, asked_for.components_)
    np.testing.assert_array_equal(by_default.transform(path), asked_for.transform(path))


def test_genotypes_that_do_not_fit_are_read_in_every_pass(tmp_path):
    n, d = 40_000, 2_000
    path = tmp_path / "x.bed"
    path.with_suffix(".fam").write_text("".join(f"f i{i}\n" for i in range(n)))
    path.write_bytes(b"\x6c\x1b\x01" + np.random.default_rng(0).bytes(n * d // 4))
    path.with_suffix(".bim").write_text("".join(f"1 rs{j} 0 {j} A G\n" for j in range(d)))
    choices = {"n_components": 1, "scale": "hwe", "max_passes": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = PCA(**choices, memory_limit="19M").fit(path)
        large = PCA(**choices).fit(path)
    np.testing.assert_array_equal(small.components_, large.components_)
    with pytest.raises(MemoryError, match="40000 samples × 2000 variants"):
        PCA(**choices, memory_limit="3M").fit(path)


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "genotypes.md"


@command_line.needed
def test_the_guide_runs(tmp_path, monkeypatch):
    text = GUIDE.read_text()
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "cohort.bed", dosages())
    store(tmp_path / "others.bed", dosages(seed=2)[:40])
    commands = [line for block in re.findall(r"^```\n(.*?)```", text, re.DOTALL | re.MULTILINE) for line in block.splitlines()]
    assert len(commands) == 4
    for command in commands:
        name, *arguments = command.split()
        assert name == "hbpca"
        subprocess.run([command_line.find(), *arguments], check=True, capture_output=True)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, GUIDE.name, "exec"), {})
    assert len((tmp_path / "others.eigenvec").read_text().splitlines()) == 41


@command_line.needed
@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed (Debian: apt install plink2)")
@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_plink2_finds_the_same(tmp_path, missing):
    X = dosages(missing=missing)
    X[:, 5] = 0  # a variant that never varies
    store(tmp_path / "x.bed", X)

    def run(*command):
        subprocess.run([str(part) for part in command], cwd=tmp_path, check=True, capture_output=True)

    how = ["meanimpute"] if missing else []
    run("plink2", "--bfile", "x", "--pca", 4, *how, "biallelic-var-wts", "--out", "theirs", "--threads", 1)
    hbpca = command_line.find()
    run(hbpca, "fit", "x.bed", "-k", 4, "--scale", "hwe", "--tol", 1e-9, "-o", "m.safetensors")
    run(hbpca, "transform", "m.safetensors", "x.bed", "-o", "ours.eigenvec")
    run(hbpca, "convert", "m.safetensors", "ours.eigenval")
    ours, theirs = (np.loadtxt(tmp_path / f"{name}.eigenval") for name in ("ours", "theirs"))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5)
    tables = [(tmp_path / f"{name}.eigenvec").read_text().splitlines() for name in ("ours", "theirs")]
    assert tables[0][0] == tables[1][0]
    ours, theirs = (np.array([line.split("\t")[2:] for line in table[1:]], dtype=float) for table in tables)
    assert [line.split("\t")[:2] for line in tables[0][1:]] == [line.split("\t")[:2] for line in tables[1][1:]]
    signs = np.sign(np.sum(ours * theirs, axis=0))
    np.testing.assert_allclose((ours * signs)[:, :2], theirs[:, :2], atol=2e-5)
    run(hbpca, "convert", "m.safetensors", "ours.eigenvec.var")
    tables = [(tmp_path / f"{name}.eigenvec.var").read_text().splitlines() for name in ("ours", "theirs")]
    assert tables[0][0].split("\t")[1:] == tables[1][0].split("\t")[2:]  # a model knows no chromosome
    ours, theirs = [line.split("\t") for line in tables[0][1:]], [line.split("\t")[1:] for line in tables[1][1:]]
    assert [line[:3] for line in ours] == [line[:3] for line in theirs]
    ours, theirs = (np.array([line[3:] for line in table], dtype=float) for table in (ours, theirs))
    np.testing.assert_allclose((ours * signs)[:, :2], theirs[:, :2], atol=2e-4)
