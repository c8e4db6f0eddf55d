"""Rows of Spark: an RDD of rows, or a DataFrame with columns of numbers or with one column of vectors.

A row of an RDD is a vector of `pyspark.ml.linalg`, an array, a list, or a SciPy matrix; matrices may have several rows.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from hbpca._input import matrix_of
from hbpca._partitions import aligned, answer, combined, on_one_thread, refuse_no_rows, score_names

#: Answers that are added at once: each level of a sum is a shuffle.
_AT_ONCE = 16

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal")
_VECTORS = ("vector", "array")


def names(X) -> list[str] | None:
    """The names of a DataFrame's columns of numbers; the entries of vectors have none."""
    if not hasattr(X, "columns"):
        return None
    kinds = [kind.partition("(")[0].partition("<")[0] for _, kind in X.dtypes]
    if len(kinds) == 1 and kinds[0] in _VECTORS:
        return None
    for (name, kind), word in zip(X.dtypes, kinds, strict=True):
        if word not in _NUMBERS:
            raise ValueError(
                f"column {name!r} is of type {kind}, not of numbers: `select` those that are, or one column of vectors"
            )
    return list(X.columns)


def partitions(X):
    """The partitions of X that have rows; X is computed once, and stored by Spark until the fit is over."""
    return SparkPartitions(X)


class SparkPartitions:
    """Each partition as one matrix, stored in the memory of its executor or on its disk, and made again where that is lost."""

    def __init__(self, X):
        self.names = names(X)
        self._blocks = _stored(_rows(X).mapPartitionsWithIndex(_block))
        try:
            found = self._blocks.map(_facts).collect()
            self._refuse(found)
            if len({sparse for _, _, _, sparse in found}) > 1:
                self._make_sparse()
        except BaseException:
            self.close()
            raise
        self.n_rows, self.count = sum(shape[0] for _, shape, _, _ in found), len(found)
        self.n_columns = found[0][1][1]
        self.dtype = np.result_type(*[dtype for _, _, dtype, _ in found])
        self._places = {index: place for place, (index, _, _, _) in enumerate(found)}

    def _refuse(self, found):
        for fact in found:
            if isinstance(fact, Exception):
                raise fact
        refuse_no_rows(len(found), "no column")

    def _make_sparse(self):
        """Vectors of a DataFrame are sparse or dense row by row, whichever is shorter."""
        mixed, self._blocks = self._blocks, _stored(self._blocks.map(_sparse))
        self._blocks.count()
        mixed.unpersist()

    def sum(self, task):
        """One round."""
        shared, places = self._blocks.context.broadcast(task), self._places
        try:
            answers = self._blocks.map(lambda block: _answer(block, shared.value, places))
            return aligned(_added(answers, self.count))
        finally:
            shared.destroy()

    def close(self):
        """Frees what Spark stores."""
        self._blocks.unpersist()


def _rows(X):
    if not hasattr(X, "columns"):
        return X
    try:
        return X.rdd
    except Exception as error:
        raise TypeError(
            f"{type(X).__module__}.{type(X).__name__} has no RDD, as over Spark Connect: use a session with a master"
        ) from error


def _stored(rdd):
    from pyspark import StorageLevel

    return rdd.persist(StorageLevel.MEMORY_AND_DISK)


def _block(index, rows):
    """The partition's number and its rows as one matrix, or what is wrong with them; nothing where there are none."""
    rows = [_entries(row) for row in rows]
    if not rows:
        return []
    try:
        return [(index, _matrix(rows))]
    except ValueError as error:
        return [(index, ValueError(f"partition {index} (counted from 0): {error}"))]


def _entries(row):
    """What holds the numbers of a row: a DataFrame's row has one of vectors in it."""
    alone = isinstance(row, tuple) and len(row) == 1 and not np.isscalar(row[0]) and row[0] is not None
    row = row[0] if alone else row
    return row.toArray() if hasattr(row, "toArray") and not hasattr(row, "indices") else row


def _matrix(rows):
    """One matrix of all rows: sparse where a row is."""
    widths = [_width(row) for row in rows]
    for place, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(f"row {place} has {width} numbers where row 0 has {widths[0]}")
    if not any(_is_sparse(row) for row in rows):
        if isinstance(rows[0], np.ndarray):
            return matrix_of(np.vstack(rows))
        return matrix_of(np.array([list(row) for row in rows], dtype=np.float64))
    if all(hasattr(row, "toArray") for row in rows):
        from scipy.sparse import csr_matrix

        starts = np.cumsum([0, *[len(row.indices) for row in rows]])
        entries = [np.concatenate([getattr(row, part) for row in rows]) for part in ("values", "indices")]
        return csr_matrix((*entries, starts), shape=(len(rows), widths[0]))
    from scipy.sparse import csr_matrix, vstack

    return matrix_of(vstack([_sparse_row(row, csr_matrix) for row in rows], format="csr"))


def _sparse_row(row, csr_matrix):
    if hasattr(row, "toArray") and not hasattr(row, "tocsr"):
        return csr_matrix((row.values, row.indices, [0, len(row.indices)]), shape=(1, row.size))
    return csr_matrix(row)


def _is_sparse(row) -> bool:
    return hasattr(row, "tocsr") or hasattr(row, "indices")


def _width(row) -> int:
    return row.size if hasattr(row, "toArray") and not hasattr(row, "tocsr") else np.shape(row)[-1]


def _facts(block):
    """Number, shape, type and kind; or the error."""
    index, matrix = block
    return matrix if isinstance(matrix, Exception) else (index, matrix.shape, matrix.dtype, hasattr(matrix, "tocsr"))


def _sparse(block):
    from scipy.sparse import csr_matrix

    return block[0], csr_matrix(block[1])


def _answer(block, task, places):
    """The partition's place and its answer, or what is wrong with its rows, which trying again does not mend."""
    on_one_thread()
    index, matrix = block
    try:
        return places[index], answer(matrix, task, places[index], len(places))
    except ValueError as error:
        return places[index], error


def _added(answers, count):
    """All answers as one, added in the order of their places, on the workers until few are left."""
    while count > _AT_ONCE:
        count = -(-count // _AT_ONCE)
        groups = answers.map(lambda pair: (pair[0] // _AT_ONCE, pair)).groupByKey(count)
        answers = groups.mapValues(list).map(lambda group: (group[0], _sum(group[1])))
    summed = _sum(answers.collect())
    if isinstance(summed, Exception):
        raise summed
    return summed


def _sum(pairs):
    """The sum of answers in the order of their places; or the first error."""
    answers = [found for _, found in sorted(pairs, key=lambda pair: pair[0])]
    errors = [found for found in answers if isinstance(found, Exception)]
    return errors[0] if errors else reduce(combined, answers)


def transformed(X, scores, k, dtype):
    """A lazy RDD of the rows' scores, or a lazy DataFrame of them with columns `pca0`, `pca1`, …"""
    names(X)
    found = _rows(X).mapPartitions(partial(_scored, scores=scores))
    if not hasattr(X, "columns"):
        return found
    from pyspark.sql.types import DoubleType, StructField, StructType

    schema = StructType([StructField(name, DoubleType(), nullable=False) for name in score_names(k)])
    return X.sparkSession.createDataFrame(found.map(lambda row: [float(score) for score in row]), schema)


def _scored(rows, scores):
    rows = [_entries(row) for row in rows]
    return scores(_matrix(rows)) if rows else []
