"""Rows in partitions that a cluster's scheduler owns: Dask, Ray and Spark, as they are.

One small protocol: `partitions.sum(task)` runs a compiled function on every partition and adds up two by two, on the
workers. The scheduler owns data, placement, spilling, retries and the dashboard; the solver's loop stays here, and takes one
round for the statistics and one for every pass.

Partitions have `count`, `n_rows`, `n_columns`, `dtype`, `names` (or None), `sum` and `close`; those without rows are left out.
"""

from __future__ import annotations

import os

import numpy as np

from hbpca import _hbpca
from hbpca._input import rows_of

#: Nominal seconds of a round of each engine beside its products, which decide between solvers with few rounds.
ROUND_COST = {"dask": 0.03, "ray": 0.01, "pyspark": 0.15}


def engine_of(X) -> str | None:
    """The scheduler that owns X, if one does."""
    module = type(X).__module__.split(".")
    if module[0] == "dask" or module[0] == "dask_expr":
        return "dask" if hasattr(X, "to_delayed") else None
    if module[:2] == ["ray", "data"]:
        return "ray"
    return "pyspark" if module[0] == "pyspark" and (hasattr(X, "mapPartitions") or hasattr(X, "columns")) else None


def partitions_of(X):
    """The partitions of X."""
    return _adapter(X).partitions(X)


def names_of(X) -> list[str] | None:
    """The names of X's columns, where it has names."""
    return _adapter(X).names(X)


def lazily_transformed(X, scores, k, dtype):
    """The scores of X's partitions, computed where and when the scheduler pleases: `scores` takes the rows of one."""
    return _adapter(X).transformed(X, scores, k, dtype)


def _adapter(X):
    # Only the engine in use is imported.
    engine = engine_of(X)
    if engine == "dask":
        from hbpca import _dask as adapter
    elif engine == "ray":
        from hbpca import _ray as adapter
    else:
        from hbpca import _spark as adapter
    return adapter


def answer(rows, task, index, count):
    """The answer of one partition, on a worker."""
    try:
        return _hbpca.partition_answer(rows_of(rows), aligned(task), index, count)
    except ValueError as error:
        raise ValueError(f"partition {index} (counted from 0): {error}") from None


def on_one_thread() -> None:
    """Before the first answer of a worker process that is one of many on its machine, each for one processor."""
    os.environ.setdefault("RAYON_NUM_THREADS", "1")


def aligned(numbers):
    """What came over a network may lie anywhere in memory."""
    return np.require(numbers, np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def combined(mine, theirs):
    """Two answers as one, on a worker."""
    return _hbpca.combine_answers(aligned(mine), aligned(theirs))


def added_in_pairs(answers, combine):
    """One answer of many, added two by two: the same order for the same number of them."""
    while len(answers) > 1:
        sums = [combine(mine, theirs) for mine, theirs in zip(answers[::2], answers[1::2], strict=False)]
        answers = sums + answers[len(answers) - len(answers) % 2 :]
    return answers[0]


def refuse_no_rows(n_rows, n_columns) -> None:
    """Refuses partitions without a row, in scikit-learn's words."""
    if n_rows == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is required")


def score_names(k) -> list[str]:
    """Names of the columns of a table of scores, as `get_feature_names_out` gives them."""
    return [f"pca{i}" for i in range(k)]


class Scores:
    """The scores of one partition's rows, on a worker; of no rows there are none."""

    def __init__(self, estimator, dtype):
        self._estimator, self._dtype = estimator, dtype

    def __call__(self, rows):
        if rows.shape[0] == 0:
            return np.empty((0, self._estimator.n_components_), dtype=self._dtype)
        return self._estimator.transform(rows)
