"""Rows of Dask: the row chunks of a `dask.array`, or the partitions of a `dask.dataframe`."""

from __future__ import annotations

from functools import partial

import numpy as np

from hbpca._input import matrix_of
from hbpca._partitions import added_in_pairs, aligned, answer, combined, refuse_no_rows, score_names


def names(X) -> list[str] | None:
    """The names of a frame's columns."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def partitions(X):
    """The chunks of X that have rows; they are counted first where their sizes are unknown."""
    return DaskPartitions(X)


class DaskPartitions:
    """Chunks as Dask has them: computed again in every round unless they are persisted."""

    def __init__(self, X):
        import dask

        self._dask = dask
        self.names = names(X)
        if self.names is None and X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions where 2 are needed: reshape it to rows and columns")
        X = _with_whole_rows(X)
        self.n_columns = int(X.shape[1]) if self.names is None else len(self.names)
        self.dtype = getattr(X, "dtype", np.dtype(np.float64)) if self.names is None else np.dtype(np.float64)
        parts = list(np.ravel(X.to_delayed()))
        counts = _known_counts(X) or dask.compute(*[dask.delayed(_count)(part) for part in parts])
        self._parts = [part for part, count in zip(parts, counts, strict=True) if count]
        self.n_rows, self.count = int(sum(counts)), len(self._parts)
        refuse_no_rows(self.n_rows, self.n_columns)

    def sum(self, task):
        """One round."""
        delayed = self._dask.delayed
        shared = delayed(task)
        answers = [delayed(_answer_of_chunk)(part, shared, i, self.count) for i, part in enumerate(self._parts)]
        (summed,) = self._dask.compute(added_in_pairs(answers, delayed(combined)))
        return aligned(summed)

    def close(self):
        """Nothing is held."""


def _with_whole_rows(X):
    return X.rechunk({1: -1}) if hasattr(X, "rechunk") and X.numblocks[1] > 1 else X


def _known_counts(X):
    """The rows of every chunk of an array, where Dask knows them."""
    counts = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    return None if np.isnan(counts).any() else counts


def _count(part) -> int:
    return part.shape[0]


def _answer_of_chunk(part, task, index, count):
    return answer(matrix_of(part), task, index, count)


def transformed(X, scores, k, dtype):
    """A lazy array of scores, or a lazy frame of them with the rows' index."""
    if not hasattr(X, "map_blocks"):
        return X.map_partitions(partial(_frame_of_scores, scores), meta=_frame(np.empty((0, k), dtype=dtype), None))
    X = _with_whole_rows(X)
    return X.map_blocks(scores, dtype=dtype, chunks=(X.chunks[0], (k,)), meta=np.empty((0, 0), dtype=dtype))


def _frame_of_scores(scores, frame):
    return _frame(scores(matrix_of(frame)), frame.index)


def _frame(scores, index):
    import pandas as pd

    return pd.DataFrame(scores, index=index, columns=score_names(scores.shape[1]))
