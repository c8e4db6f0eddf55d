"""Rows of Ray: a `ray.data.Dataset` with columns of numbers, or with one column of vectors."""

from __future__ import annotations

import numpy as np

from hbpca._input import matrix_of
from hbpca._partitions import added_in_pairs, aligned, answer, combined, on_one_thread, refuse_no_rows, score_names


def names(X) -> list[str] | None:
    """The names of columns of numbers; the entries of vectors have none."""
    schema = X.schema()
    if schema is None:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required")
    kind = str(schema.types[0])
    of_vectors = len(schema.names) == 1 and ("list<" in kind or "Tensor" in kind)
    return None if of_vectors else list(schema.names)


def partitions(X):
    """The blocks of X that have rows; X is computed once."""
    return RayPartitions(X)


class RayPartitions:
    """Blocks as matrices in Ray's object store: read where they are, and made again where a node is lost."""

    def __init__(self, X):
        import ray

        self._ray = ray
        X = X.materialize()
        self.names = names(X)
        matrix, facts = ray.remote(_matrix), ray.remote(_facts)
        blocks = [matrix.remote(block, self.names, i) for i, block in enumerate(X.to_numpy_refs())]
        found = self._get([facts.remote(block) for block in blocks])
        self._blocks = [block for block, (shape, _) in zip(blocks, found, strict=True) if shape[0]]
        found = [(shape, dtype) for shape, dtype in found if shape[0]]
        refuse_no_rows(len(found), "no column")
        self.n_rows, self.count = sum(shape[0] for shape, _ in found), len(found)
        self.n_columns = found[0][0][1]
        self.dtype = np.result_type(*[dtype for _, dtype in found])

    def sum(self, task):
        """One round."""
        of_block, combine = self._ray.remote(_answer), self._ray.remote(combined)
        shared = self._ray.put(task)
        answers = [of_block.remote(block, shared, i, self.count) for i, block in enumerate(self._blocks)]
        return aligned(self._get(added_in_pairs(answers, combine.remote)))

    def close(self):
        """Ray frees the matrices once nobody names them."""
        self._blocks = []

    def _get(self, references):
        """What tasks return; or what one of them raised, without Ray's frames around it."""
        try:
            return self._ray.get(references)
        except self._ray.exceptions.RayTaskError as error:
            cause = error
            while isinstance(cause, self._ray.exceptions.RayTaskError):
                cause = cause.cause
            raise cause from error


def _matrix(block, columns, index):
    """The rows of a block, which has its columns one by one."""
    if not block:
        return np.empty((0, 0))
    if columns is None:
        (values,) = block.values()
        if values.dtype == object:
            lengths = {np.shape(row) for row in values}
            if len(lengths) > 1:
                raise ValueError(f"block {index} (counted from 0) has vectors of different lengths")
            values = np.stack(list(values))
        return matrix_of(values)
    for name in columns:
        if np.ndim(block[name]) != 1 or np.asarray(block[name]).dtype.kind not in "biuf":
            raise ValueError(
                f"column {name!r} is not of numbers: `select_columns` those that are, or give one column of vectors"
            )
    return matrix_of(np.column_stack([block[name] for name in columns]))


def _facts(matrix):
    return matrix.shape, matrix.dtype


def _answer(matrix, task, index, count):
    on_one_thread()
    return answer(matrix, task, index, count)


def transformed(X, scores, k, dtype):
    """A lazy dataset of scores: with columns of numbers, or with one column of vectors that has the name it had."""
    columns = names(X)
    place = score_names(k) if columns else next(iter(X.schema().names))
    arguments = {"scores": scores, "columns": columns, "place": place}
    return X.map_batches(_scored, fn_kwargs=arguments, batch_format="numpy", batch_size=None)


def _scored(block, scores, columns, place):
    found = scores(_matrix(block, columns, 0))
    return {place: found} if columns is None else dict(zip(place, found.T, strict=True))
