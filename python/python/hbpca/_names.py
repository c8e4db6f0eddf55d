"""Names of columns: of frames and files, in messages and in tables of results."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

_ROW = re.compile(r"^(row \d+)")
_COLUMN = re.compile(r"column (\d+) \(counted from 0\)")


class Named(NamedTuple):
    """Something whose columns have these names, or none."""

    feature_names_in_: list[str] | None


@contextmanager
def columns_named(estimator):
    """Errors about a column give its name, where the estimator knows it."""
    try:
        yield
    except ValueError as error:
        names, found = getattr(estimator, "feature_names_in_", None), _COLUMN.search(str(error))
        if names is None or found is None or int(found[1]) >= len(names):
            raise
        text = str(error).replace(found[0], f"column {str(names[int(found[1])])!r}")
        raise ValueError(_ROW.sub(r"\1 (counted from 0)", text)) from None


def check_file_names(estimator, names, given="the file") -> None:
    """Refuse a file, or what else is given, whose columns have other names, or another order, than those of the fit."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None or names is None or list(known) == list(names):
        return
    other = [name for name in names if name not in set(known)]
    missing = [name for name in known if name not in set(names)]
    said = "The feature names should match those that were passed during fit: "
    if other:
        said += f"{given} has {_some(other)}, which the fit had not"
    elif missing:
        said += f"{given} lacks {_some(missing)}"
    else:
        said += "they must be in the same order as they were in fit"
    raise ValueError(said)


def _some(names) -> str:
    shown = ", ".join(repr(str(name)) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def loadings(estimator):
    """Components as columns, one row a feature: a frame with names where pandas is there and names are known, else an array."""
    values = np.asarray(estimator.components_).T
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return values
    try:
        import pandas
    except ImportError:
        return values
    return pandas.DataFrame(values, index=list(names), columns=list(estimator.get_feature_names_out()))
