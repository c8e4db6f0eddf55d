"""Arrays as the compiled half borrows them.

| given | copied |
|---|---|
| C-contiguous rows of float32 or float64, writable or not, in memory or mapped | nothing |
| rows with a gap between them (a slice of columns) | nothing |
| SciPy CSR with sorted 32-bit indices | the n + 1 row starts |
| SciPy CSR with 64-bit indices | row starts and column indices |
| SciPy CSC or COO | converted to CSR |
| the name of a file | read where it fits `memory_limit`, left on disk where not |
| Fortran order, reversed or strided columns, foreign byte order, unaligned memory | once, to C order |
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np


class Dense(NamedTuple):
    """Row l starts at l·stride of a contiguous run of values."""

    values: np.ndarray
    n: int
    d: int
    stride: int


class File(NamedTuple):
    """A file, read into memory where it fits and otherwise left on disk."""

    path: str
    memory_limit: int | str | None


class Sparse(NamedTuple):
    """SciPy's compressed rows."""

    values: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    d: int


def file_of(X, memory_limit) -> File | None:
    """The file that X names or, where a limit is given, maps from its first to its last row."""
    if isinstance(X, str | os.PathLike):
        return File(os.fspath(X), memory_limit)
    if memory_limit is None or not isinstance(X, np.memmap) or X.filename is None:
        return None
    path = os.fspath(X.filename)
    if not path.endswith(".npy") or X.ndim != 2 or not X.flags.c_contiguous:
        return None
    whole = np.load(path, mmap_mode="r")
    same = (whole.shape, whole.dtype, whole.offset) == (X.shape, X.dtype, X.offset)
    return File(path, memory_limit) if same else None


def is_bed(X) -> bool:
    """Whether X names PLINK's genotypes, which stay packed."""
    return isinstance(X, str | os.PathLike) and os.fspath(X).lower().endswith(".bed")


def collected(X):
    """A lazy frame of polars as the frame it describes; anything else as it is."""
    is_lazy = type(X).__module__.split(".")[0] == "polars" and hasattr(X, "collect")
    return X.collect() if is_lazy else X


def refuse_malformed(X):
    """Refuses sparse matrices whose indices point outside. SciPy follows them without a look, out of the array if need be."""
    kind = getattr(X, "format", None)
    if kind not in ("csr", "csc", "coo", "bsr") or not hasattr(X, "data"):
        return
    if len(X.shape) != 2:
        return
    if kind == "coo":
        _refuse_outside("row", X.row, X.shape[0])
        _refuse_outside("column", X.col, X.shape[1])
        if not len(X.row) == len(X.col) == len(X.data):
            raise ValueError(
                f"malformed sparse matrix: {len(X.row)} rows, {len(X.col)} columns and {len(X.data)} values are listed"
            )
        return
    rows, columns = X.shape if kind != "csc" else X.shape[::-1]
    if kind == "bsr":
        rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
    starts = X.indptr
    if len(starts) != rows + 1:
        raise ValueError(f"malformed sparse matrix: indptr has {len(starts)} numbers, and needs {rows + 1}")
    if starts[0] != 0:
        raise ValueError(f"malformed sparse matrix: indptr begins with {starts[0]}, and must begin with 0")
    if (starts[1:] < starts[:-1]).any():
        raise ValueError("malformed sparse matrix: indptr falls; every row must start where the one before ends")
    if starts[-1] > min(len(X.indices), len(X.data)):
        raise ValueError(
            f"malformed sparse matrix: indptr ends with {starts[-1]}, and there are {len(X.indices)} indices "
            f"and {len(X.data)} values"
        )
    _refuse_outside("row" if kind == "csc" else "column", X.indices[: starts[-1]], columns)


def _refuse_outside(what, indices, count):
    # A negative number is a large one without its sign: one look at all of them.
    if len(indices) and indices.view(f"u{indices.itemsize}").max() >= count:
        raise ValueError(f"malformed sparse matrix: {what} {indices.min()} to {indices.max()} where 0 to {count - 1} exist")


def matrix_of(X):
    """Anything array-like or sparse as a two-dimensional array or CSR matrix of float32 or float64."""
    X = collected(X)
    refuse_malformed(X)
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions where 2 are needed: reshape it to rows and columns")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def rows_of(X) -> Dense | Sparse:
    """The rows of a validated matrix: a two-dimensional array, or a SciPy CSR matrix or array."""
    return _dense(X) if isinstance(X, np.ndarray) else _sparse(X)


def _sparse(X) -> Sparse:
    refuse_malformed(X)
    if not X.has_canonical_format:
        X = X.copy()  # the caller's matrix stays as it is
        X.sum_duplicates()
    return Sparse(X.data, X.indptr, X.indices, X.shape[1])


def _dense(X) -> Dense:
    n, d = X.shape
    if not (X.dtype.isnative and X.flags.aligned):
        X = np.require(X, X.dtype.newbyteorder("="), ["C_CONTIGUOUS", "ALIGNED"])
    if not X.flags.c_contiguous:
        stride, rest = divmod(X.strides[0], X.itemsize)
        if rest == 0 and stride >= d and X.strides[1] == X.itemsize:
            span = ((n - 1) * stride + d,)
            flat = np.lib.stride_tricks.as_strided(X, span, (X.itemsize,), writeable=False)
            return Dense(flat, n, d, stride)
        X = np.ascontiguousarray(X)
    return Dense(X.reshape(-1), n, d, d)
