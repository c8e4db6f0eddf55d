"""The paper's solvers by name, and its theory."""

import math

import numpy as np
import pytest
from data import with_spectrum

from hbpca import solve, theory


@pytest.fixture(scope="module")
def X():
    return with_spectrum(3000, 20, 20)


@pytest.fixture(scope="module")
def exact(X):
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    return values[::-1], vectors[:, ::-1].T


ALONE = ["power", "power-m", "vr-pca", "vr-pca-projected", "vr-hb-power"]
RIVALS = ["shift-invert-svrg", "shift-invert-agd", "lazy-svd", "vr-riemannian", "coordinate-power"]


@pytest.mark.parametrize("solver", [*ALONE, *RIVALS, "covariance", "krylov", "anchored", "auto"])
def test_solvers_find_the_first_component(solver, X, exact):
    solution = solve(X, solver, tol=1e-7, batch=0.2, epoch=20)
    assert solution.outcome == "converged", solution.certificate
    # The solver's own bound, or where it knows nothing of λ₂ that of the true gap: sin ≤ ρ/(θ − λ₂).
    bound = solution.certificate.angle_bounds[0]
    assert np.isnan(bound) == (solver in ALONE or solver in RIVALS)
    if np.isnan(bound):
        bound = solution.certificate.residuals[0] / (solution.eigenvalues[0] - exact[0][1])
    error = 1 - abs(solution.components[0] @ exact[1][0])
    assert error <= bound**2 + 20 * np.finfo(float).eps  # d products of unit vectors' entries
    assert solution.eigenvalues[0] == pytest.approx(exact[0][0], rel=1e-9)
    assert solution.history[-1]["residual"] <= 1e-7 * solution.history[-1]["theta"]
    assert solution.solver == solver or solver == "auto"
    assert solution.chosen_because


def test_parameters_reach_the_method(X, exact):
    lambda2 = exact[0][1]
    solution = solve(
        X, "vr-hb-power", eta=0.25, momentum="oracle", lambda2=lambda2, batch="20%", epoch=5, max_passes=20, tol=0.0
    )
    record = solution.history[1]
    assert record["eta"] == 0.25
    assert record["beta"] == pytest.approx((1 - 0.25 + 0.25 * lambda2) ** 2)
    assert record["lambda2"] == lambda2
    # Each epoch: a full pass, and 20 % of the rows for all steps but the first.
    steps = np.diff([r["passes"] for r in solution.history])
    assert steps == pytest.approx(1 + 4 * 0.2)


def test_oja_improves(X, exact):
    solution = solve(X, "oja", eta=0.5, batch=100, max_passes=40, tol=1e-12, seed=3)
    assert solution.outcome == "budget"
    assert abs(solution.components[0] @ exact[1][0]) > 0.99


def test_a_given_start_is_used(X, exact):
    warm = solve(X, "power", start=exact[1][0], tol=1e-9)
    assert len(warm.history) == 1
    with pytest.raises(ValueError, match="20"):
        solve(X, "power", start=np.ones(3))


def test_weights(X):
    weights = np.r_[np.ones(1500), np.zeros(1500)]
    assert solve(X, "krylov", weights=weights).eigenvalues == pytest.approx(solve(X[:1500], "krylov").eigenvalues)


def test_rates_of_the_paper():
    problem = theory.Problem(1.0, 0.9, 0.0, 10)
    eta = 0.3
    ratio = (1 - eta + eta * 1.0) / (1 - eta + eta * 0.9)
    assert theory.g(problem, eta) == pytest.approx(1 / math.cosh(10 * math.acosh(ratio)) ** 2)
    contraction = theory.contraction(problem, eta)
    assert contraction.h == 0 and contraction.rate == pytest.approx(theory.g(problem, eta))
    assert theory.best_step_size(problem) == pytest.approx(1.0)  # without noise the longest step is best
    noisy = theory.Problem(1.0, 0.9, 0.5, 10)
    best = theory.best_step_size(noisy)
    assert theory.contraction(noisy, best).rate < theory.contraction(noisy, 1.0).rate
    assert theory.contraction(noisy, best, direction="worst").rate >= theory.contraction(noisy, best).rate
    assert theory.contraction(noisy, method="vr-power-m") == theory.contraction(noisy, 1.0)
    assert theory.best_step_size(noisy, method="vr-pca") > 0
    assert theory.bound(noisy, best, d=5, worst_batch=2.0).ln_rate > theory.contraction(noisy, best).ln_rate
    assert repr(noisy) == "Problem(lambda1=1, lambda2=0.9, variance=0.5, epoch=10)"
    assert (noisy.lambda1, noisy.lambda2, noisy.variance, noisy.epoch) == (1.0, 0.9, 0.5, 10)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda p: theory.Problem(1.0, 2.0, 0.0, 10), "lambda2 = 2"),
        (lambda p: p.g(0.1, method="adam"), 'choose "vr-hb-power"'),
        (lambda p: p.g(), "give eta"),
        (lambda p: p.g(0.1, method="vr-power-m"), "leave eta out"),
        (lambda p: p.contraction(0.1, direction="best"), '"second" or "worst"'),
        (lambda p: p.best_step_size(method="oja"), '"vr-hb-power" or "vr-pca"'),
        (lambda p: theory.bound(p, 0.1, d=1, worst_batch=2.0), "d = 1"),
    ],
)
def test_wrong_questions_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call(theory.Problem(1.0, 0.5, 0.1, 10))


def test_the_variance_of_batches(X):
    A = X - X.mean(axis=0)
    C = A.T @ A / len(A)
    squares = (A * A).sum(axis=1)
    exact = np.linalg.norm((A.T * squares) @ A / len(A) - C @ C, 2)
    measured = theory.gradient_variance(X, 1, replacement=True, relative_tol=1e-3)
    assert exact * (1 - 1e-3) <= measured <= exact * (1 + 1e-12)
    assert theory.gradient_variance(X, len(X)) == 0
    with pytest.raises(ValueError, match="3000 rows"):
        theory.gradient_variance(X, 3001)
