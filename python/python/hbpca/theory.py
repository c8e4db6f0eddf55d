"""The paper's analysis: what one epoch of a variance-reduced method does to the error.

>>> from hbpca.theory import Problem
>>> problem = Problem(lambda1=1.0, lambda2=0.95, variance=0.02, epoch=20)
>>> eta = problem.best_step_size()
>>> contraction(problem, eta).rate < 1 < contraction(problem, method="vr-power-m").rate
True
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hbpca._hbpca import Problem
from hbpca._hbpca import gradient_variance as _gradient_variance
from hbpca._input import matrix_of, rows_of
from hbpca._settings import Settings

__all__ = ["Contraction", "LogBound", "Problem", "best_step_size", "bound", "contraction", "g", "gradient_variance"]


class Contraction(NamedTuple):
    """The modelled contraction of the squared tangent of the error over one epoch."""

    #: The part without noise.
    g: float
    #: The part that the noise of the batches adds.
    h: float
    #: ln(g + h).
    ln_rate: float

    @property
    def rate(self) -> float:
        """g + h; below 1 the method converges."""
        return self.g + self.h


class LogBound(NamedTuple):
    """The theorem's own bound, valid and hugely pessimistic, as logarithms."""

    ln_g: float
    ln_h: float
    ln_rate: float


def g(problem: Problem, eta: float | None = None, *, method: str = "vr-hb-power") -> float:
    """The rate of one epoch without noise; `method` is `vr-hb-power`, `vr-pca` or `vr-power-m` (which has no step size)."""
    return problem.g(eta, method=method)


def contraction(
    problem: Problem, eta: float | None = None, *, method: str = "vr-hb-power", direction: str = "second"
) -> Contraction:
    """The modelled contraction of one epoch, for an error along u₂ (`second`) or along the worst direction (`worst`)."""
    return Contraction(*problem.contraction(eta, method=method, direction=direction))


def best_step_size(problem: Problem, *, method: str = "vr-hb-power") -> float:
    """The step size η with the smallest modelled contraction."""
    return problem.best_step_size(method=method)


def bound(problem: Problem, eta: float, *, d: int, worst_batch: float) -> LogBound:
    """The bound that the theorem proves for d dimensions and max‖C_S − C‖²/K = `worst_batch`."""
    return LogBound(*problem.bound(eta, d, worst_batch))


def gradient_variance(
    X: Any,
    batch: int,
    *,
    center: bool = True,
    scale: str | None = None,
    replacement: bool = False,
    relative_tol: float = 0.01,
    seed: int = 0,
) -> float:
    """K = ‖E[(C_S − C)²]‖ for batches of `batch` rows of X, measured to `relative_tol`."""
    settings = Settings(center=center, scale=scale, seed=seed)
    return _gradient_variance(rows_of(matrix_of(X)), settings, batch, replacement=replacement, relative_tol=relative_tol)
