"""Rows in partitions that a cluster's scheduler owns: Dask, Ray and Spark, as they are.

One small protocol: `partitions.sum(task)` runs a compiled function on every partition and adds up two by two, on the
workers. The scheduler owns data, placement, spilling, retries and the dashboard; the solver's loop stays here, and takes one
round for the statistics and one for every pass.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hbpca import _hbpca
from hbpca._input import matrix_of, rows_of

#: Nominal seconds of a round of each engine beside its products, which decide between solvers with few rounds.
ROUND_COST = {"dask": 0.03, "ray": 0.01, "pyspark": 0.15}


def engine_of(X) -> str | None:
    """The scheduler that owns X, if one does."""
    module = type(X).__module__.split(".")
    if module[0] == "dask" or module[0] == "dask_expr":
        return "dask" if hasattr(X, "to_delayed") else None
    if module[:2] == ["ray", "data"]:
        return "ray"
    return "pyspark" if module[0] == "pyspark" and hasattr(X, "rdd" if hasattr(X, "columns") else "mapPartitions") else None


def partitions_of(X):
    """The partitions of X."""
    return {"dask": DaskPartitions, "ray": RayPartitions, "pyspark": SparkPartitions}[engine_of(X)](X)


def answer(rows, task, index, count):
    """The answer of one partition, on a worker."""
    return _hbpca.partition_answer(rows_of(rows), aligned(task), index, count)


def aligned(numbers):
    """What came over a network may lie anywhere in memory."""
    return np.require(numbers, np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def combined(mine, theirs):
    """Two answers as one, on a worker."""
    return _hbpca.combine_answers(aligned(mine), aligned(theirs))


class DaskPartitions:
    """The row chunks of a `dask.array`, or the partitions of a `dask.dataframe`."""

    def __init__(self, X):
        import dask

        self._dask = dask
        names = getattr(X, "columns", None)
        self.names = None if names is None else [str(name) for name in names]
        if self.names is None and X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions where 2 are needed: reshape it to rows and columns")
        if self.names is None and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        self._parts = list(np.ravel(X.to_delayed()))
        self.n_columns = int(X.shape[1]) if self.names is None else len(self.names)
        rows = X.shape[0] if self.names is None else np.nan
        self.n_rows = None if np.isnan(rows) else int(rows)
        self.dtype = getattr(X, "dtype", np.dtype(np.float64)) if self.names is None else np.dtype(np.float64)

    def not_empty(self):
        """Leaves out partitions without rows, and finds out how many rows there are; chunks of unknown sizes are counted."""
        counts = self._dask.compute(*[self._dask.delayed(_count)(part) for part in self._parts])
        self._parts = [part for part, count in zip(self._parts, counts, strict=True) if count]
        self.n_rows = int(sum(counts))
        return self

    @property
    def count(self) -> int:
        return len(self._parts)

    def sum(self, task):
        """One round."""
        delayed = self._dask.delayed
        shared = delayed(task)
        answers = [delayed(_answer_of_chunk)(part, shared, i, self.count) for i, part in enumerate(self._parts)]
        while len(answers) > 1:
            pairs = zip(answers[::2], answers[1::2], strict=False)
            sums = [delayed(combined)(mine, theirs) for mine, theirs in pairs]
            answers = sums + answers[len(answers) - len(answers) % 2 :]
        (summed,) = self._dask.compute(answers[0])
        return aligned(summed)


def _count(part) -> int:
    return part.shape[0]


def _answer_of_chunk(part, task, index, count):
    return answer(matrix_of(part), task, index, count)


class RayPartitions:
    """The blocks of a `ray.data.Dataset` whose columns are all numbers."""

    def __init__(self, X):
        import ray

        self._ray = ray
        self._blocks = X.materialize().to_numpy_refs()
        self.names = list(X.schema().names)
        self.n_columns = len(self.names)
        self.n_rows = None
        self.dtype = np.dtype(np.float64)

    def not_empty(self):
        """Leaves out blocks without rows."""
        count = self._ray.remote(lambda block: len(next(iter(block.values()))) if block else 0)
        counts = self._ray.get([count.remote(block) for block in self._blocks])
        self._blocks = [block for block, rows in zip(self._blocks, counts, strict=True) if rows]
        self.n_rows = int(sum(counts))
        return self

    @property
    def count(self) -> int:
        return len(self._blocks)

    def sum(self, task):
        """One round."""
        of_block = self._ray.remote(_answer_of_columns)
        combine = self._ray.remote(combined)
        shared = self._ray.put(task)
        answers = [of_block.remote(block, self.names, shared, i, self.count) for i, block in enumerate(self._blocks)]
        while len(answers) > 1:
            pairs = zip(answers[::2], answers[1::2], strict=False)
            sums = [combine.remote(mine, theirs) for mine, theirs in pairs]
            answers = sums + answers[len(answers) - len(answers) % 2 :]
        return np.array(self._ray.get(answers[0]))


def _answer_of_columns(block, names, task, index, count):
    columns = [np.asarray(block[name]) for name in names]
    rows = columns[0] if len(columns) == 1 and columns[0].ndim == 2 else np.column_stack(columns)
    return answer(matrix_of(rows), np.array(task), index, count)


class SparkPartitions:
    """The partitions of an RDD of rows of numbers, or of a DataFrame with columns of numbers or one of ML vectors."""

    def __init__(self, X):
        self.names = None
        if hasattr(X, "columns"):
            self.names, X = list(X.columns), X.rdd
        self._rdd = X.mapPartitions(_gathered).filter(lambda rows: rows is not None).zipWithIndex().cache()
        counts = self._rdd.map(lambda pair: (pair[1], pair[0].shape)).collect()
        if not counts:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
        self.count = len(counts)
        self.n_rows = int(sum(shape[0] for _, shape in counts))
        self.n_columns = int(counts[0][1][1])
        if self.names is not None and len(self.names) != self.n_columns:
            self.names = None
        self.dtype = np.dtype(np.float64)

    def not_empty(self):
        """Partitions without rows are left out already."""
        return self

    def sum(self, task):
        """One round."""
        shared, count = self._rdd.context.broadcast(task), self.count
        answers = self._rdd.map(lambda pair: answer(pair[0], shared.value, pair[1], count))
        try:
            return aligned(answers.treeReduce(combined))
        finally:
            shared.destroy()


def _gathered(rows):
    """The rows of a partition as one matrix: sparse where vectors are."""
    rows = [row[0] if len(row) == 1 and hasattr(row[0], "toArray") else row for row in rows]
    if not rows:
        return [None]
    if hasattr(rows[0], "indices") and hasattr(rows[0], "toArray"):
        from scipy.sparse import csr_matrix

        starts = np.cumsum([0, *[len(row.indices) for row in rows]])
        indices = np.concatenate([row.indices for row in rows])
        values = np.concatenate([row.values for row in rows])
        return [csr_matrix((values, indices, starts), shape=(len(rows), rows[0].size))]
    return [np.array([row.toArray() if hasattr(row, "toArray") else list(row) for row in rows], dtype=np.float64)]


def lazily_transformed(X, transform, k, dtype):
    """The scores of X's partitions, computed where and when the scheduler pleases."""
    engine = engine_of(X)
    if engine == "dask" and hasattr(X, "map_blocks"):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        return X.map_blocks(transform, dtype=dtype, chunks=(X.chunks[0], (k,)), meta=np.empty((0, 0), dtype=dtype))
    if engine == "dask":
        return X.map_partitions(partial(_scores_frame, transform), meta=_scores_frame_of(np.empty((0, k), dtype=dtype), None))
    raise TypeError(f"transform of {type(X).__name__} is not lazy: map partitions of it through `pca.transform` yourself")


def _scores_frame(transform, frame):
    return _scores_frame_of(transform(frame), frame.index)


def _scores_frame_of(scores, index):
    import pandas as pd

    return pd.DataFrame(scores, index=index, columns=[f"pca{i}" for i in range(scores.shape[1])])
