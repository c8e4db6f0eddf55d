#!/usr/bin/env python3
"""Seconds to read files: hbpca against the usual Python readers, in one run.

    cargo build --release --package hbpca-cli --package hbpca-io --bins --examples
    bench/readers.py DATA [--build target/release] [--rounds 7] [--threads 2]

DATA is a folder with `a9a.xz`, `ijcnn1.tst.bz2`, `news20.bz2`, `reuters_lasvm.trn.bz2`, `reuters21578.npz`,
`covtype.csv.gz` (those that are missing are left out). They are unpacked into a temporary folder, where Matrix Market
files of the sparse ones are written by SciPy.

Every round runs every reader on every file, so that all of them meet the same disturbances; the smallest time of each
is shown. All read a file ten times in a row: Python's readers in this process, hbpca's in one for all files of a
round (example `read_speed`). `fresh` is the `read_seconds` of `hbpca info --json`: a process that reads one file, once,
and starts its threads and touches all its memory for it. A ratio is the fastest other reader's time divided by hbpca's.
A second table sets reading compressed files against the programs that only unpack them.

Needs numpy, scipy, scikit-learn and pandas. pandas is shown with its default parser and with pyarrow's, if that is
installed; `numpy.loadtxt` takes seconds for the large table and is asked once.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import lzma
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy
import pandas
import scipy.io
import scipy.sparse
from sklearn.datasets import load_svmlight_file

OPENERS = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}
UNPACKERS = {".bz2": "bzip2", ".gz": "gzip", ".xz": "xz"}
LIBSVM = ["a9a.xz", "ijcnn1.tst.bz2", "news20.bz2", "reuters_lasvm.trn.bz2"]
CSV = ["covtype.csv.gz"]
NPZ = "reuters21578.npz"
SLOW = "NumPy loadtxt"
REPEAT = 10


def unpacked(packed: Path, folder: Path, name: str) -> Path:
    plain = folder / name
    with OPENERS[packed.suffix](packed) as source, plain.open("wb") as target:
        shutil.copyfileobj(source, target)
    return plain


def plain_files(data: Path, folder: Path) -> list[Path]:
    """The files to read, uncompressed."""
    libsvm = [unpacked(data / x, folder, x.split(".")[0] + ".svm") for x in LIBSVM if (data / x).exists()]
    csv = [unpacked(data / x, folder, x.removesuffix(".gz")) for x in CSV if (data / x).exists()]
    mtx = []
    for path in libsvm:
        mtx.append(path.with_suffix(".mtx"))
        scipy.io.mmwrite(mtx[-1], load_svmlight_file(str(path))[0])
    if (data / NPZ).exists():
        mtx.append(folder / NPZ.replace(".npz", ".mtx"))
        scipy.io.mmwrite(mtx[-1], scipy.sparse.load_npz(data / NPZ))
    return libsvm + csv + mtx


def others(path: Path) -> dict[str, Callable[[], object]]:
    """The usual readers of a file."""
    match path.suffix:
        case ".svm":
            return {"scikit-learn": lambda: load_svmlight_file(str(path))}
        case ".mtx":
            return {"SciPy": lambda: scipy.io.mmread(path)}
    readers = {
        "pandas": lambda: pandas.read_csv(path),
        SLOW: lambda: numpy.loadtxt(path, delimiter=",", skiprows=1),
    }
    try:
        import pyarrow  # noqa: F401

        readers["pandas, pyarrow"] = lambda: pandas.read_csv(path, engine="pyarrow")
    except ImportError:
        pass
    return readers


def fresh_seconds(build: Path, path: Path, threads: int) -> float:
    command = [build / "hbpca", "info", str(path), "--json", "--threads", str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["read_seconds"]


def repeated_seconds(build: Path, paths: list[Path], threads: int) -> dict[Path, float]:
    command = [build / "examples" / "read_speed", "--repeat", str(REPEAT), *paths]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return {Path(name): float(took) for name, took, *_ in (line.split("\t") for line in done.stdout.splitlines())}


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    kept = action()
    took = time.perf_counter() - start
    del kept  # after the clock was read
    return took


def unpack(path: Path) -> None:
    subprocess.run([UNPACKERS[path.suffix], "-dc", str(path)], check=True, stdout=subprocess.DEVNULL)


def show(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        first, *rest = (cell.ljust(w) if j == 0 else cell.rjust(w) for j, (cell, w) in enumerate(zip(row, widths)))
        print("  ".join([first, *rest]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--build", type=Path, default=Path("target/release"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        files = plain_files(args.data, Path(folder))
        packed = [args.data / x for x in LIBSVM + CSV if (args.data / x).exists()]
        best: dict[tuple[Path, str], float] = {}

        def keep(path: Path, who: str, took: float) -> None:
            best[path, who] = min(took, best.get((path, who), float("inf")))

        for turn in range(args.rounds):
            for path in files:
                for who, reader in others(path).items():
                    for _ in range(REPEAT if who != SLOW else turn == 0):
                        keep(path, who, seconds(reader))
                keep(path, "fresh", fresh_seconds(args.build, path, args.threads))
            for path, took in repeated_seconds(args.build, files, args.threads).items():
                keep(path, "hbpca", took)
            for path in packed:
                keep(path, "unpacking", seconds(lambda path=path: unpack(path)))
                keep(path, "hbpca", fresh_seconds(args.build, path, args.threads))

        rows = [["file", "MB", "reader", "ms", "hbpca", "ratio", "fresh", "ratio"]]
        for path in files:
            ours = [best[path, "hbpca"], best[path, "fresh"]]
            for who in others(path):
                took = best[path, who]
                size = f"{path.stat().st_size / 1e6:.1f}"
                cells = [cell for our in ours for cell in (f"{1e3 * our:.1f}", f"{took / our:.1f}")]
                rows.append([path.name, size, who, f"{1e3 * took:.1f}", *cells])
        show(rows)
        print()
        rows = [["compressed file", "MB", "unpacking alone", "hbpca", "ratio"]]
        for path in packed:
            took, ours = best[path, "unpacking"], best[path, "hbpca"]
            size = f"{path.stat().st_size / 1e6:.1f}"
            rows.append([path.name, size, f"{took:.4f}", f"{ours:.4f}", f"{took / ours:.1f}"])
        show(rows)


if __name__ == "__main__":
    main()
