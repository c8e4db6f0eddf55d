"""scikit-learn's own arguments, and what they mean here.

| `svd_solver` | `solver` | `tol=None` |
|---|---|---|
| auto | auto | 1e-6 |
| full | auto | to rounding |
| covariance_eigh | covariance | to rounding |
| arpack | krylov | to rounding |
| randomized | auto | 1e-6, or to rounding where `iterated_power` or `n_oversamples` ask for more than by default |

Blocks are always orthonormalised, whatever `power_iteration_normalizer` says.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

_SOLVERS = {"auto": "auto", "full": "auto", "covariance_eigh": "covariance", "arpack": "krylov", "randomized": "auto"}
_EXACT = ("full", "covariance_eigh", "arpack")
_NORMALIZERS = ("auto", "QR", "LU", "none")
#: scikit-learn's default.
OVERSAMPLES = 10


class Request(NamedTuple):
    """What the arguments ask for."""

    solver: str
    #: The one that has bounds of its own, or `None`.
    svd_solver: str | None = None
    to_rounding: bool = False


def request(
    svd_solver: str,
    solver: str,
    tol: float | None,
    *,
    iterations: Any,
    default_iterations: Any,
    n_oversamples: int,
    normalizer: str,
) -> Request:
    """What scikit-learn's arguments ask for, beside `solver` and `tol`."""
    if svd_solver not in _SOLVERS:
        raise ValueError(f"svd_solver = {svd_solver!r}: choose one of {', '.join(_SOLVERS)}")
    if svd_solver != "auto" and solver != "auto":
        raise ValueError(
            f"svd_solver = {svd_solver!r} and solver = {solver!r}: give one of them, and leave the other at 'auto'"
        )
    if not (iterations == "auto" or (isinstance(iterations, numbers.Integral) and iterations >= 0)):
        raise ValueError(f"iterated_power = {iterations!r}: give a number of at least 0, or 'auto'")
    if not (isinstance(n_oversamples, numbers.Integral) and n_oversamples >= 1):
        raise ValueError(f"n_oversamples = {n_oversamples!r}: give a number of at least 1")
    if normalizer not in _NORMALIZERS:
        raise ValueError(f"power_iteration_normalizer = {normalizer!r}: choose one of {', '.join(_NORMALIZERS)}")
    more = iterations != default_iterations or n_oversamples != OVERSAMPLES
    exact = svd_solver in _EXACT or (svd_solver == "randomized" and more)
    return Request(
        solver=_SOLVERS[svd_solver] if solver == "auto" else solver,
        svd_solver=None if svd_solver == "auto" else svd_solver,
        to_rounding=exact and tol is None,
    )
