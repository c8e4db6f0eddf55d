"""One solver by name, for people who study the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hbpca import _hbpca
from hbpca._certificate import Certificate
from hbpca._input import matrix_of, rows_of
from hbpca._settings import Choices, Settings
from hbpca._svd_solver import Request

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
    seed: Any = None,
    start: Any = None,
    weights: Any = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    **choices: Unpack[Choices],
) -> Solution:
    """Run a solver of the paper: `power`, `power-m`, `oja`, `vr-pca`, `vr-pca-projected`, `vr-power-m`,
    `vr-hb-power`; one of its rivals: `shift-invert-svrg`, `shift-invert-agd`, `lazy-svd`, `vr-riemannian`,
    `coordinate-power`; or of the product: `auto`, `covariance`, `krylov`, `anchored`.

    Parameters that are left at `None` have the defaults of the command line.

    Parameters
    ----------
    X : two-dimensional array of float32 or float64, or SciPy sparse
    k : number of components; the paper's solvers and their rivals find one, but for `lazy-svd`
    seed : of the start vector and of the batches: a number or a NumPy generator
    start : k×d, the first iterate, one vector a row
    weights : one weight a row
    callback : called with a dict at each certified iterate; stops the run by returning something true
    center, scale : preparation of the columns, carried out implicitly; as of `PCA`
    tol : a component has converged when its residual is at most tol times its own eigenvalue; `None` is 1e-6
    angle_tol : besides, go on until the sine of the largest angle to the true components is at most this
    certify : a probability, such as 1e-9, with which the angle bounds may fail after a probe with random vectors
    max_passes, max_seconds : no step is begun that would read more passes over the data, or after this time
    eta, momentum, lambda2, batch, epoch : parameters of the paper's methods
    threads : the result does not depend on their number
    """
    fitted = _hbpca.fit(
        rows_of(matrix_of(X)),
        Settings.of(choices, Request(solver), random_state=seed, start=start),
        n_components=k,
        weights=None if weights is None else np.ascontiguousarray(weights, dtype=np.float64),
        callback=callback,
    )
    return Solution(
        components=fitted.components,
        eigenvalues=fitted.eigenvalues,
        certificate=Certificate.from_numbers(fitted.certificate, fitted.components.dtype),
        history=fitted.history,
        outcome=fitted.outcome,
        passes=fitted.passes,
        full_passes=fitted.full_passes,
        seconds=fitted.seconds,
        solver=fitted.solver,
        chosen_because=fitted.chosen_because,
    )
