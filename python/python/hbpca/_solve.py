"""One solver by name, for people who study the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hbpca import _hbpca
from hbpca._certificate import Certificate
from hbpca._input import matrix_of, rows_of
from hbpca._settings import Settings, seed_of


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found, and how."""

    #: k×d, one unit vector a row.
    components: np.ndarray
    #: Of C = (1/n)Σaaᵀ, descending.
    eigenvalues: np.ndarray
    certificate: Certificate
    #: One dict for each certified iterate: passes, full_passes, seconds, theta, residual, eta, beta, lambda2.
    history: list[dict[str, Any]]
    #: "converged", "budget", "stagnated" or "interrupted".
    outcome: str
    #: Rows read, divided by n.
    passes: float
    full_passes: int
    seconds: float
    solver: str
    chosen_because: str


def solve(
    X: Any,
    solver: str = "vr-hb-power",
    *,
    k: int = 1,
    center: bool = True,
    scale: str | None = None,
    tol: float | None = None,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    eta: float | str | None = None,
    momentum: str | None = None,
    lambda2: float | None = None,
    batch: int | float | str | None = None,
    epoch: int | None = None,
    seed: Any = None,
    threads: int | None = None,
    start: Any = None,
    weights: Any = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
) -> Solution:
    """Run a solver of the paper: `power`, `power-m`, `oja`, `vr-pca`, `vr-power-m`, `vr-hb-power`; or of the product:
    `auto`, `covariance`, `krylov`, `anchored`.

    Parameters that are left at `None` have the defaults of the command line.

    Parameters
    ----------
    X : two-dimensional array of float32 or float64, or SciPy sparse
    k : number of components; the paper's solvers find one
    center, scale : preparation of the columns, carried out implicitly
    tol : residuals at most tol·θ₁ count as converged
    eta, momentum, lambda2, batch, epoch : parameters of the paper's methods
    start : k×d, the first iterate, one vector a row
    weights : one weight a row
    callback : called with a dict at each certified iterate; stops the run by returning something true
    """
    settings = Settings(
        solver=solver,
        center=center,
        scale=scale,
        tol=tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        eta=eta,
        momentum=momentum,
        lambda2=lambda2,
        batch=batch,
        epoch=epoch,
        seed=seed_of(seed),
        threads=threads,
        start=None if start is None else np.atleast_2d(np.asarray(start, dtype=np.float64)),
    )
    fitted = _hbpca.fit(
        rows_of(matrix_of(X)),
        settings,
        n_components=k,
        weights=None if weights is None else np.ascontiguousarray(weights, dtype=np.float64),
        callback=callback,
    )
    return Solution(
        components=fitted.components,
        eigenvalues=fitted.eigenvalues,
        certificate=Certificate.from_numbers(fitted.certificate),
        history=fitted.history,
        outcome=fitted.outcome,
        passes=fitted.passes,
        full_passes=fitted.full_passes,
        seconds=fitted.seconds,
        solver=fitted.solver,
        chosen_because=fitted.chosen_because,
    )
