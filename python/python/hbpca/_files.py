"""Reading data and models."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hbpca import _hbpca

if TYPE_CHECKING:
    from hbpca._pca import PCA


class Data(NamedTuple):
    """What a file holds."""

    #: The matrix: an ndarray, or a SciPy CSR array.
    X: Any
    #: One label a row, or `None`.
    labels: np.ndarray | None
    #: Names of the columns, or `None`.
    column_names: list[str] | None


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    label_column: int | str | None = None,
    columns: Sequence[int | str] | None = None,
    dtype: Any = None,
    n_columns: int | None = None,
    header: bool | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str | None = None,
    missing: str = "error",
) -> Data:
    """Read LIBSVM, CSV/TSV, .npy, SciPy .npz, Matrix Market, IDX or Parquet, each also compressed, or a folder of parts.

    Parameters
    ----------
    path : path of a file or folder
    format : the format's name, when neither name nor content should decide
    label_column : the column of CSV or Parquet that holds labels, by name or number
    columns : the columns of CSV or Parquet to use
    dtype : `numpy.float32` or `numpy.float64`; the default keeps the file's own type
    n_columns : the number of columns of LIBSVM files, whose last columns may be empty
    header : whether the first line of CSV names the columns; found out by default
    decimal, thousands : marks of the numbers in CSV, such as "," and "."
    encoding : of a text, such as "latin1"; UTF-8 and UTF-16 are recognised
    missing : "error", or "nan" for what is missing: empty fields and the likes of NA in CSV, nulls in Parquet, NaN
    """
    precision = None if dtype is None else {"float32": "f32", "float64": "f64"}.get(np.dtype(dtype).name, str(dtype))
    found = _hbpca.read(
        path,
        format=format,
        label_column=label_column,
        columns=None if columns is None else list(columns),
        precision=precision,
        n_columns=n_columns,
        header=header,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        missing=missing,
    )
    for note in found["notes"]:
        warnings.warn(note, UserWarning, stacklevel=2)
    X = found["values"]
    if "starts" in found:
        try:
            from scipy.sparse import csr_array
        except ImportError as error:
            raise ImportError(f"{os.fspath(path)} holds sparse data, which needs SciPy: pip install scipy") from error
        # 32-bit indices where they reach, as SciPy itself does.
        most = max(X.size, *found["shape"])
        index = np.int32 if most <= np.iinfo(np.int32).max else np.int64
        column_of, starts = (found[part].astype(index, copy=False) for part in ("columns", "starts"))
        X = csr_array((X, column_of, starts), shape=found["shape"])
    labels = found["labels"]
    return Data(X, None if labels is None else np.asarray(labels), found["column_names"])


def load(path: str | os.PathLike[str]) -> PCA:
    """A fitted `PCA` from a model file, written by `PCA.save` or by the command line."""
    from hbpca._pca import PCA  # whose base classes take long to import

    return PCA._from_fitted(_hbpca.Fitted.load(path))
