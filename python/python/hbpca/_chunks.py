"""Rows that come in chunks, again and again: what `PCA.fit` takes beside arrays and files.

| given | read |
|---|---|
| arrays of h5py, zarr and PyTables | slices of rows, whole chunks of the storage where they are small enough |
| backed sparse data of anndata, by rows (CSR) | slices of rows |
| a function that returns an iterator of chunks | called for every pass |
| an object whose `__iter__` begins anew | iterated for every pass |
| a list or tuple of two-dimensional chunks | the same; a list of rows is one array, as ever |
| pyarrow datasets, objects with `__arrow_c_stream__` | record batches, scanned for every pass |
| `polars.LazyFrame` | batches, computed for every pass |
| a generator, or another iterator | refused: it gives its rows once |

A chunk is a two-dimensional array, a SciPy sparse matrix or array, a frame, or an Arrow batch or table.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hbpca._input import Dense, Sparse, matrix_of, rows_of

#: Packages whose arrays lie on disk and are sliced by rows.
_ARRAYS_ON_DISK = ("h5py", "zarr", "tables")
#: Numbers of a chunk that batches of a table are put together to.
_NUMBERS = 1 << 18
#: Bytes of a chunk that scores are computed of at once.
_SCORED_AT_ONCE = 16 << 20
#: Chunks of an array with this many bytes are read as fast as larger ones; a copy stands beside them while they are converted.
_COPIES = 2


class Iterated(NamedTuple):
    """Chunks that are iterated anew for every pass."""

    begin: Callable[[], Iterator[Dense | Sparse]]
    names: list[str] | None
    memory_limit: int | str | None

    #: Of the attributes of a fit.
    dtype = np.dtype(np.float64)

    def chunks(self) -> Iterator[Dense | Sparse]:
        """One pass."""
        return self.begin()


class Sliced(NamedTuple):
    """An array on disk whose rows can be sliced."""

    read: Callable[[int, int], Dense | Sparse]
    #: The same rows as NumPy or SciPy have them.
    whole: Callable[[int, int], Any]
    cut: Callable[[int], list[int]]
    n: int
    d: int
    nnz: int
    sparse: bool
    single: bool
    memory_limit: int | str | None

    names = None

    @property
    def dtype(self):
        """Of the attributes of a fit."""
        return np.dtype(np.float32 if self.single else np.float64)

    def chunks(self) -> Iterator[Dense | Sparse]:
        """One pass."""
        starts = self.cut(_SCORED_AT_ONCE)
        return (self.read(start, end) for start, end in itertools.pairwise(starts))


Source = Iterated | Sliced


def source_of(X: Any, memory_limit: int | str | None = None) -> Source | None:
    """X as a source of chunks, or nothing where it is an array, a frame, a matrix or a file."""
    if isinstance(X, Source):
        return X._replace(memory_limit=memory_limit)
    if isinstance(X, np.ndarray | str | os.PathLike) or hasattr(X, "tocsr"):
        return None
    package = type(X).__module__.split(".")[0]
    if package in _ARRAYS_ON_DISK and hasattr(X, "shape"):
        return _sliced(X, memory_limit)
    if package == "anndata" and hasattr(X, "group") and hasattr(X, "format"):
        return _sliced_sparse(X, memory_limit)
    opened = _opened(X, package)
    if opened is None:
        return None
    begin, names = opened
    return Iterated(lambda: _rows(begin()), names, memory_limit)


def _opened(X, package) -> tuple[Callable[[], Iterator[Any]], list[str] | None] | None:
    """What gives a new iterator of chunks, and the names of the columns where they are known."""
    if package == "polars" and hasattr(X, "collect_schema") and hasattr(X, "collect_batches"):
        return lambda: _even(X.collect_batches(maintain_order=True)), X.collect_schema().names()
    if package == "pyarrow" and hasattr(X, "to_batches") and not hasattr(X, "__array__"):
        schema = getattr(X, "projected_schema", None) or X.schema
        return lambda: _even(X.to_batches()), list(schema.names)
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is a {type(X).__name__}, which gives its chunks once, and a fit reads them several times: give the function "
            "that makes it, such as fit(lambda: chunks()), or an object whose __iter__ begins anew; or add its chunks one by "
            "one with partial_fit"
        )
    if hasattr(X, "__array__") or hasattr(X, "__dataframe__"):
        return None
    if hasattr(X, "__arrow_c_stream__"):
        return lambda: _even(_arrow_reader(X)), list(_arrow_reader(X).schema.names)
    if callable(X) and not isinstance(X, type):
        return lambda: iter(X()), None
    if isinstance(X, dict | set | frozenset | bytes) or not hasattr(X, "__iter__"):
        return None
    # What has items may be an array of rows: it is one of chunks if its first item has two dimensions.
    if hasattr(X, "__getitem__") and not _has_two_dimensions(next(iter(X), None)):
        return None
    return lambda: iter(X), None


def _rows(chunks) -> Iterator[Dense | Sparse]:
    """Chunks as the compiled half borrows them; those without rows are left out."""
    for chunk in chunks:
        rows = prepared(chunk)
        if (rows.n if isinstance(rows, Dense) else len(rows.starts) - 1) > 0:
            yield rows


def _even(batches) -> Iterator[np.ndarray]:
    """Batches of a table cut anew: engines may cut them otherwise the next time, and chunks must not change."""
    held, have, rows = [], 0, 0
    for batch in batches:
        X = _matrix(batch)
        rows = rows or max(1, _NUMBERS // max(1, X.shape[1]))
        while len(X):
            part, X = X[: rows - have], X[rows - have :]
            held.append(part)
            have += len(part)
            if have == rows:
                yield np.concatenate(held)
                held, have = [], 0
    if held:
        yield np.concatenate(held)


def _has_two_dimensions(chunk) -> bool:
    if isinstance(chunk, list | tuple):
        return False
    return hasattr(chunk, "tocsr") or len(getattr(chunk, "shape", ())) == 2


def prepared(chunk: Any) -> Dense | Sparse:
    """A chunk as the compiled half borrows it."""
    return rows_of(_matrix(chunk))


def _matrix(chunk):
    """A chunk as an array or a CSR matrix of float32 or float64."""
    is_arrow = hasattr(chunk, "schema") and hasattr(chunk, "num_columns")
    return _of_arrow(chunk) if is_arrow else matrix_of(chunk)


def _of_arrow(batch) -> np.ndarray:
    """The columns of a record batch or a table beside each other; a null is NaN."""
    import pyarrow as pa

    columns, types = [], set()
    for name, column in zip(batch.schema.names, batch.columns):
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise ValueError(f"column {name!r} holds {kind}, not numbers: leave it out, as in dataset.scanner(columns=[…])")
        column = column.cast(pa.float64()) if pa.types.is_boolean(kind) else column
        values = column.to_numpy() if hasattr(column, "num_chunks") else column.to_numpy(zero_copy_only=False)
        columns.append(values)
        types.add(values.dtype)
    dtype = np.float32 if types == {np.dtype(np.float32)} else np.float64
    rows = np.empty((batch.num_rows, len(columns)), dtype=dtype)
    for j, values in enumerate(columns):
        rows[:, j] = values
    return rows


def _arrow_reader(X):
    try:
        import pyarrow as pa
    except ImportError as error:
        raise TypeError(f"X is an Arrow stream ({type(X).__name__}), and reading it needs pyarrow: install it") from error
    return pa.RecordBatchReader.from_stream(X)


def _sliced(X, memory_limit) -> Sliced:
    shape = tuple(X.shape)
    if len(shape) != 2:
        raise ValueError(f"X has {len(shape)} dimensions where 2 are needed: choose or reshape it to rows and columns")
    n, d = shape
    single = np.dtype(X.dtype) == np.float32
    chunks = getattr(X, "chunks", None) or getattr(X, "chunkshape", None)
    row_bytes = max(1, d * (4 if single else 8))

    def cut(size: int) -> list[int]:
        return cuts(n, max(1, size // _COPIES // row_bytes), chunks[0] if chunks else 1)

    def whole(start: int, end: int) -> np.ndarray:
        return np.asarray(X[start:end])

    def read(start: int, end: int) -> Dense | Sparse:
        return prepared(whole(start, end))

    return Sliced(read, whole, cut, n, d, n * d, False, single, memory_limit)


def _sliced_sparse(X, memory_limit) -> Sliced:
    if X.format != "csr":
        raise ValueError(
            f"X is stored by columns ({X.format}), and reading rows would read all of it every time: load it with to_memory(), "
            "or write it once as CSR"
        )
    n, d = X.shape
    starts = np.asarray(X.group["indptr"][...], dtype=np.int64)
    single = np.dtype(X.dtype) == np.float32
    entry = (4 if single else 8) + 4

    def cut(size: int) -> list[int]:
        # As many rows as hold the entries, of which a copy stands beside them.
        most = max(1, size // _COPIES // entry)
        edges = [0]
        while edges[-1] < n:
            reach = int(np.searchsorted(starts, starts[edges[-1]] + most, side="right")) - 1
            edges.append(min(n, max(edges[-1] + 1, reach)))
        return edges

    def whole(start: int, end: int):
        return X[start:end]

    def read(start: int, end: int) -> Dense | Sparse:
        return prepared(whole(start, end))

    return Sliced(read, whole, cut, n, d, int(starts[-1]), True, single, memory_limit)


def cuts(n: int, rows: int, together: int) -> list[int]:
    """Where chunks of at most so many rows start, and n; on the borders of what is stored together where that is no longer."""
    rows = rows // together * together if rows > together else rows
    return [*range(0, n, rows), n]
