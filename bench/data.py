"""The rows of the table, and their data as files that every child reads alike.

A data folder holds `shape` ("n d dense|sparse prepared|raw") and raw little-endian arrays: `values` (f32, by rows), and for
sparse data `columns` (u32) and `starts` (u64) of compressed rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SEED = 20260101
REAL_K = (1, 10, 50)
#: Of text, where they are asked for.
LARGE_K = (100, 200, 500)
SCALING_K = 10
#: Eigenvalues of the generated data's distribution, the i-th from 0.
SPECTRA: dict[str, Callable[[np.ndarray], np.ndarray]] = {"easy": lambda i: 0.7**i, "hard": lambda i: (1 + i) ** -0.3}
N_GROWS = [(n, 100) for n in (100_000, 200_000, 400_000)]
D_GROWS = [(20_000, d) for d in (250, 500, 1000, 2000)]
QUICK_ROWS = 5000


class Rows(NamedTuple):
    """A matrix as a child sees it."""

    X: Any
    #: Its columns have still to be standardised, within the measured time.
    raw: bool


@dataclass(frozen=True)
class DataSet:
    name: str
    group: str
    make: Callable[[], Any]
    ks: tuple[int, ...]
    standardise: bool = False
    #: Among all rows, and not only those that are named.
    by_default: bool = True


def real_sets(folder: Path, quick: bool) -> list[DataSet]:
    import hbpca

    def read(*names: str, **options: object) -> Callable[[], Any]:
        def load() -> Any:
            parts = [hbpca.read(folder / name, dtype=np.float32, **options).X for name in names]
            X = parts[0] if len(parts) == 1 else np.concatenate(parts)
            return X[:QUICK_ROWS] if quick else X

        return load

    def dense(load: Callable[[], Any]) -> Callable[[], np.ndarray]:
        return lambda: np.ascontiguousarray(X.toarray() if hasattr(X := load(), "toarray") else X, dtype=np.float32)

    mnist = ("train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz")
    ks = REAL_K[:2] if quick else REAL_K
    return [
        DataSet("ijcnn1", "real", dense(read("ijcnn1.tst.bz2")), tuple(k for k in ks if k <= 22), standardise=True),
        DataSet("covtype", "real", dense(read("covtype.csv.gz", label_column="Cover_Type")), ks, standardise=True),
        DataSet("MNIST", "real", dense(read(*mnist)), ks, standardise=True),
        DataSet("Reuters-21578", "real", read("reuters21578.npz"), ks),
        DataSet("news20", "real", read("news20.bz2"), ks),
        DataSet("Reuters-21578", "large", read("reuters21578.npz"), LARGE_K, by_default=False),
        DataSet("news20", "large", read("news20.bz2"), LARGE_K[:-1], by_default=False),
        DataSet("hard-20000x5000", "large", lambda: generate(20_000, 5_000, "hard"), LARGE_K[:1], by_default=False),
    ]


def generated_sets(quick: bool) -> list[DataSet]:
    if quick:
        return [generated("easy", "n", 2000, 20), generated("hard", "d", 1000, 60)]
    growing = [("n", N_GROWS), ("d", D_GROWS)]
    return [generated(spectrum, grows, n, d) for spectrum in SPECTRA for grows, shapes in growing for n, d in shapes]


def generated(spectrum: str, grows: str, n: int, d: int) -> DataSet:
    return DataSet(f"{spectrum}-{grows}-{n}x{d}", "generated", lambda: generate(n, d, spectrum), (SCALING_K,))


def generate(n: int, d: int, spectrum: str) -> np.ndarray:
    """Gaussian rows whose covariance has the spectrum and a random basis; centred, so that nothing is left to prepare."""
    rng = np.random.default_rng([SEED, n, d])
    basis, _ = np.linalg.qr(rng.standard_normal((d, d)))
    root = (np.sqrt(SPECTRA[spectrum](np.arange(d)))[:, None] * basis.T).astype(np.float32)
    X = rng.standard_normal((n, d), dtype=np.float32) @ root
    return X - X.mean(axis=0, dtype=np.float64).astype(np.float32)


def standardised(X: np.ndarray) -> np.ndarray:
    """Means and deviations in f64; constant columns become 0, as with scikit-learn's `StandardScaler`."""
    mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    deviation[deviation == 0] = 1
    X = X - mean.astype(np.float32)
    X -= X.mean(axis=0, dtype=np.float64).astype(np.float32)
    X /= deviation.astype(np.float32)
    return X


def chosen(sets: list[DataSet], patterns: list[str]) -> list[DataSet]:
    """The sets, with those k, of which a pattern names the group, the set, or the row `set/k`."""

    def wanted(data: DataSet, k: int) -> bool:
        names = {data.group, f"{data.name}/{k}"} | ({data.name} if data.by_default else set())
        meant = [pattern for pattern in patterns if data.by_default or pattern != "*"]
        return any(fnmatch(name.lower(), pattern.lower()) for name in names for pattern in meant)

    kept = [(data, tuple(k for k in data.ks if wanted(data, k))) for data in sets]
    return [replace(data, ks=ks) for data, ks in kept if ks]


def write(data: DataSet, folder: Path, *, prepared: bool) -> Rows:
    X = data.make()
    raw = data.standardise and not prepared
    if data.standardise and prepared:
        X = standardised(X)
    folder.mkdir(parents=True, exist_ok=True)
    sparse = hasattr(X, "indptr")
    kind, state = "sparse" if sparse else "dense", "raw" if raw else "prepared"
    (folder / "shape").write_text(f"{X.shape[0]} {X.shape[1]} {kind} {state}")
    if sparse:
        X.sort_indices()
        X.data.astype("<f4").tofile(folder / "values")
        X.indices.astype("<u4").tofile(folder / "columns")
        X.indptr.astype("<u8").tofile(folder / "starts")
    else:
        X.astype("<f4", copy=False).tofile(folder / "values")
    return Rows(X, raw)


def read(folder: Path) -> Rows:
    n, d, kind, state = (folder / "shape").read_text().split()
    values = np.fromfile(folder / "values", dtype="<f4")
    if kind == "dense":
        return Rows(values.reshape(int(n), int(d)), state == "raw")
    from scipy.sparse import csr_array

    columns = np.fromfile(folder / "columns", dtype="<u4").astype(np.int32)
    starts = np.fromfile(folder / "starts", dtype="<u8").astype(np.int32)
    return Rows(csr_array((values, columns, starts), shape=(int(n), int(d))), False)
