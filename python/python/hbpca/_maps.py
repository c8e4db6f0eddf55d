"""Arrays of a fitted estimator as the compiled half reads them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Holes(NamedTuple):
    """What becomes of missing values in rows that are transformed."""

    missing: str | None
    #: Whether the means are known.
    center: bool
    ridge: float | None


class Maps(NamedTuple):
    """What `_hbpca.transform` reads."""

    components: np.ndarray
    shift: np.ndarray | None
    scale: np.ndarray | None
    factors: np.ndarray | None


class Gaussian(NamedTuple):
    """What `_hbpca.covariance`, `precision` and `log_likelihoods` read."""

    maps: Maps
    variances: np.ndarray
    noise: float
    whiten: bool


def exact(values):
    """Contiguous float64, or nothing of nothing."""
    return None if values is None else np.ascontiguousarray(values, dtype=np.float64)
