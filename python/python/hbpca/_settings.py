"""The choices of a fit. `None` leaves the default to the compiled half, which owns them all."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from hbpca._svd_solver import Request


class Choices(TypedDict, total=False):
    """What `PCA` and `solve` let their users choose under the same names."""

    center: bool
    scale: str | None
    tol: float | None
    angle_tol: float | None
    certify: float | None
    max_passes: float | None
    max_seconds: float | None
    eta: float | str | None
    momentum: str | None
    lambda2: float | None
    batch: int | float | str | None
    epoch: int | None
    threads: int | None
    missing: str | None
    em_tol: float | None
    em_max_rounds: int | None
    em_ridge: float | None
    disk_rate: float | None


@dataclass(frozen=True)
class Settings:
    """What `_hbpca.fit` reads."""

    solver: str | None = None
    svd_solver: str | None = None
    center: bool = True
    scale: str | None = None
    tol: float | None = None
    to_rounding: bool = False
    angle_tol: float | None = None
    certify: float | None = None
    max_passes: float | None = None
    max_seconds: float | None = None
    eta: float | str | None = None
    momentum: str | None = None
    lambda2: float | None = None
    batch: int | float | str | None = None
    epoch: int | None = None
    seed: int | None = None
    threads: int | None = None
    start: np.ndarray | None = None
    missing: str | None = None
    em_tol: float | None = None
    em_max_rounds: int | None = None
    em_ridge: float | None = None
    disk_rate: float | None = None

    @classmethod
    def of(cls, choices: Mapping[str, Any], asked: Request, *, random_state: Any, start: Any = None) -> Settings:
        """From what users write; `start` holds one vector a row."""
        if start is not None:
            start = np.atleast_2d(np.asarray(start, dtype=np.float64))
        return cls(**asked._asdict(), seed=seed_of(random_state), start=start, **choices)

    def __post_init__(self):
        object.__setattr__(self, "center", bool(self.center))
        # "auto" is the name of the default.
        for name in ("solver", "eta"):
            if isinstance(getattr(self, name), str) and getattr(self, name) == "auto":
                object.__setattr__(self, name, None)


def wanted_components(n_components: Any) -> int | float | str | None:
    """A count, a share, "mle", or `None` for all."""
    if n_components is None or isinstance(n_components, str):
        return n_components
    if isinstance(n_components, numbers.Integral):
        return int(n_components)
    if isinstance(n_components, numbers.Real):
        return float(n_components)
    raise ValueError(
        f'n_components = {n_components!r}: give a number, a share of the variance between 0 and 1, "mle" or None for all'
    )


def seed_of(random_state: Any) -> int | None:
    """A seed: the number itself, a draw from a generator, or the default for `None`."""
    if random_state is None:
        return None
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint64))
    raise ValueError(f"random_state = {random_state!r}: give a whole number, a NumPy generator or None")
