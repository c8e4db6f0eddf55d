#!/usr/bin/env python3
"""Fit counts of single cells in a compressed .h5ad file: hbpca --memory against scanpy's pp.pca.

    python3 bench/single_cell.py [--cells 200000] [--genes 20000] [--entries 2000] [-k 50] [--memory 2G] [--folder DIR]
                                 [--runs NAMES] [--genes-used marked,all] [--limit 900]

Generates the file once (its seed is printed): each cell draws its counts from one of 60 mixtures of gene programs. X is
log1p of counts brought to 10,000 a cell, f32, compressed rows, gzip, as anndata writes it. `highly_variable` marks 2,000 genes.
All programs read the same file. Needs NumPy, SciPy and h5py, and scanpy for the peers (`pip install scanpy`).
`cargo build --release` makes the binary.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import h5py
import numpy as np
from scipy import sparse

from out_of_core import BINARY, components, human, sine, watch

N_TYPES, N_PROGRAMS, TABLE = 60, 120, 1 << 16
#: Marked as highly variable.
N_MARKED = 2000
#: scanpy in a process of its own: reads the file, fits, saves the components, prints one JSON object.
PEER = """
import json, sys, time
import anndata, numpy as np, scanpy
path, k, mask, out, options = sys.argv[1], int(sys.argv[2]), sys.argv[3] or None, sys.argv[4], json.loads(sys.argv[5])
begin = time.perf_counter()
adata = anndata.read_h5ad(path, backed="r" if options.pop("backed", False) else None)
read = time.perf_counter() - begin
scanpy.pp.pca(adata, n_comps=k, mask_var=mask, **options)
seconds = time.perf_counter() - begin
V = np.asarray(adata.varm["PCs"], dtype="f8").T
np.save(out, V[:, adata.var[mask].to_numpy()] if mask else V)
print(json.dumps({"seconds": seconds, "read": read}))
"""


def generate(path: Path, n: int, d: int, entries: int, seed: int) -> None:
    """Writes the file, block by block of cells."""
    facts = json.dumps({"cells": n, "genes": d, "entries": entries, "seed": seed})
    wanted = path.with_suffix(".json")
    if wanted.exists() and wanted.read_text() == facts:
        return
    rng = np.random.default_rng(seed)
    usual = rng.lognormal(0, 1.6, d)
    # A table of genes for each program, in which a gene stands as often as it is expressed.
    tables = np.empty((N_PROGRAMS, TABLE), dtype="i4")
    for table in tables:
        raised = np.where(rng.random(d) < 0.05, rng.lognormal(1.5, 1.0, d), 1.0)
        table[:] = rng.choice(d, TABLE, p=usual * raised / (usual * raised).sum())
    mixtures = rng.dirichlet(np.full(N_PROGRAMS, 0.1), N_TYPES)
    sums, squares = np.zeros(d), np.zeros(d)
    with h5py.File(path, "w") as file:
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": np.array([n, d])})
        # Chunks of a fixed length, so that every size of the file is unpacked in the same pieces.
        store = {"maxshape": (None,), "chunks": (1 << 15,), "compression": "gzip"}
        data = X.create_dataset("data", (0,), "f4", **store)
        indices = X.create_dataset("indices", (0,), "i4", **store)
        starts = [np.zeros(1, dtype="i8")]
        for first in range(0, n, 2000):
            block = cells(rng, min(2000, n - first), entries, tables, mixtures, d)
            end = data.shape[0] + block.nnz
            data.resize((end,))
            indices.resize((end,))
            data[end - block.nnz :], indices[end - block.nnz :] = block.data, block.indices
            starts.append(block.indptr[1:] + starts[-1][-1])
            sums += np.asarray(block.sum(axis=0)).ravel()
            squares += np.asarray(block.multiply(block).sum(axis=0)).ravel()
        starts = np.concatenate(starts)
        # As SciPy has them: of the type of the indices where they fit.
        starts = starts.astype("i4") if starts[-1] < 2**31 else starts
        X.create_dataset("indptr", data=starts, compression="gzip")
        variance = squares / n - (sums / n) ** 2
        marked = np.zeros(d, dtype=bool)
        marked[np.argsort(-variance)[:N_MARKED]] = True
        frame(file, "obs", np.array([f"cell{i}" for i in range(n)], dtype=object), {})
        frame(file, "var", np.array([f"gene{j}" for j in range(d)], dtype=object), {"highly_variable": marked})
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    wanted.write_text(facts)


def cells(rng, n: int, entries: int, tables, mixtures, d: int) -> sparse.csr_matrix:
    """log1p of normalised counts of n cells."""
    depth = rng.lognormal(np.log(1.35 * entries), 0.3, n).astype("i8")
    cell = np.repeat(np.arange(n), depth)
    kind = rng.integers(0, N_TYPES, n)
    parts = [rng.choice(N_PROGRAMS, size, p=mixtures[k]) for size, k in zip(depth, kind)]
    gene = tables[np.concatenate(parts), rng.integers(0, TABLE, len(cell))]
    counts = sparse.csr_matrix((np.ones(len(cell), dtype="f4"), (cell, gene)), shape=(n, d))
    counts.sum_duplicates()
    counts.data *= np.repeat((1e4 / depth).astype("f4"), np.diff(counts.indptr))
    np.log1p(counts.data, out=counts.data)
    return counts


def frame(file, name: str, index: np.ndarray, columns: dict) -> None:
    group = file.create_group(name)
    group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
    group.attrs["column-order"] = np.array(list(columns), dtype=h5py.string_dtype())
    names = group.create_dataset("_index", data=index, dtype=h5py.string_dtype(), compression="gzip")
    names.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
    for column, values in columns.items():
        stored = group.create_dataset(column, data=values)
        stored.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})


def run(command: list, out, limit: float) -> tuple[dict | None, float, int]:
    """Runs a command, for so many seconds at most; returns what it printed as JSON, seconds and peak memory."""
    begin = time.perf_counter()
    child = subprocess.Popen([str(part) for part in command], stdout=out)
    timer = threading.Timer(limit, child.kill)
    timer.start()
    peak = watch(child)
    timer.cancel()
    seconds = time.perf_counter() - begin
    out.seek(0)
    text = out.read()
    return (json.loads(text) if text and child.returncode in (0, 1) else None), seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=200_000, help="[200000]")
    parser.add_argument("--genes", type=int, default=20_000, help="[20000]")
    parser.add_argument("--entries", type=int, default=2000, help="of a cell, about [2000]")
    parser.add_argument("-k", type=int, default=50, help="components [50]")
    parser.add_argument("--memory", default="2G", help="that hbpca may take [2G]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--folder", type=Path, default=BINARY.parent.parent / "single-cell")
    parser.add_argument("--runs", default="hbpca,hbpca-in-memory,arpack,covariance_eigh,chunked", help="[all]")
    parser.add_argument("--genes-used", default="marked,all", help="[marked,all]")
    parser.add_argument("--limit", type=float, default=900, help="seconds after which a run is ended [900]")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"{options.cells}x{options.genes}-{options.entries}.h5ad"
    generate(path, options.cells, options.genes, options.entries, options.seed)
    with h5py.File(path) as file:
        print(
            f"{options.cells:,} × {options.genes:,}, {file['X/data'].shape[0]:,} entries, seed {options.seed}, "
            f"{human(path.stat().st_size)} with gzip; k = {options.k}"
        )
    print(
        f"{'genes':<8}{'program':<26}{'seconds':>9}{'of them reading':>17}{'passes':>8}{'peak':>11}{'sine to hbpca':>15}",
        flush=True,
    )
    peers = {
        "arpack": {"svd_solver": "arpack"},
        "covariance_eigh": {"svd_solver": "covariance_eigh"},
        "chunked": {"chunked": True, "chunk_size": 5000, "backed": True},
    }
    for used in options.genes_used.split(","):
        mask = "highly_variable" if used == "marked" else ""
        exact = None
        for name in options.runs.split(","):
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
                result = Path(folder) / ("v.npy" if name in peers else "v.safetensors")
                if name in peers:
                    command = [sys.executable, "-c", PEER, path, options.k, mask, result, json.dumps(peers[name])]
                else:
                    memory = [] if name == "hbpca-in-memory" else ["--memory", options.memory]
                    command = [BINARY, "fit", path, "-k", options.k, "--json", "-q", "-o", result, *memory]
                    command += ["--mask", mask] if mask else []
                told, seconds, peak = run(command, out, options.limit)
                label = f"scanpy {name}" if name in peers else f"{name} --memory {options.memory}" if memory else name
                if told is None:
                    ended = "ended after" if seconds >= options.limit else "failed after"
                    print(f"{used:<8}{label:<26}  {ended} {seconds:.0f} s, peak {human(peak)}", flush=True)
                    continue
                V = np.load(result) if name in peers else components(result)
                angle = "" if exact is None else f"{sine(V, exact):.1e}"
                if name not in peers and exact is None:
                    exact = np.linalg.qr(V.T)[0].T
                passes = "" if name in peers else f"{told['passes']:.1f}"
                read = f"{told['read']:.1f}" if "read" in told else ""
                print(f"{used:<8}{label:<26}{seconds:>9.1f}{read:>17}{passes:>8}{human(peak):>11}{angle:>15}", flush=True)


if __name__ == "__main__":
    main()
