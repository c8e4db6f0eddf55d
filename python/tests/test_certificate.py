"""What `certificate_` says: status, clusters, certainty; and the warning about angles that are not known."""

import warnings

import numpy as np
import pytest

from hbpca import PCA, load, solve
from hbpca._compat import ConvergenceWarning


def axes(*values):
    """Rows ±a·eⱼ: C = diag(2aⱼ²/n), and the means are 0."""
    return np.vstack([np.diag(values), -np.diag(values)]).astype(float)


def silent(pca, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return pca.fit(X)


def slow(n=400, d=30):
    return np.random.default_rng(0).normal(size=(n, d)) * 3 * 0.93 ** np.arange(d)


def test_every_component_has_a_status():
    pca = silent(PCA(3), axes(1e4, 3, 2, 1))
    assert pca.certificate_.status == ("converged",) * 3
    assert (pca.certificate_.relative_residuals <= 1e-6).all() and pca.certificate_.worst <= 1e-6
    np.testing.assert_allclose(np.abs(pca.components_), np.eye(3, 4), atol=1e-6)


def test_without_variance_there_is_nothing_to_be_relative_to():
    pca = silent(PCA(3), axes(3, 2, 0, 0))
    assert pca.certificate_.status == ("converged", "converged", "no-variance")
    assert np.isnan(pca.certificate_.relative_residuals[2]) and pca.certificate_.worst <= 1e-6


def test_components_of_a_cluster_are_named_together():
    pca = silent(PCA(3), axes(3, 2, 2, 1))
    ((first, last, angle),) = pca.certificate_["clusters"]
    assert (first, last) == (1, 2) and angle < 1e-6


def test_a_cut_cluster_is_worth_a_warning():
    with pytest.warns(ConvergenceWarning, match="component 2 to the true one is not known to 0.1"):
        PCA(2).fit(axes(3, 2, 2, 1))


@pytest.mark.parametrize("solver", ["power", "vr-pca"])
def test_solvers_that_know_nothing_of_the_gap_do_not_warn(solver):
    X = slow()
    pca = silent(PCA(1, solver=solver, eta=0.05 if solver == "vr-pca" else None, batch=0.2, epoch=5, max_passes=5000), X)
    assert pca.outcome_ == "converged"


def test_an_angle_can_be_asked_for():
    X = slow()
    rough = PCA(2, solver="krylov", tol=0.5, angle_tol=1e-7).fit(X)
    assert rough.outcome_ == "converged" and rough.certificate_.subspace_angle_bound <= 1e-7
    assert solve(X, "krylov", k=2, tol=0.5, angle_tol=1e-7).certificate.subspace_angle_bound <= 1e-7
    with pytest.raises(ValueError, match="angle"):
        PCA(2, angle_tol=2).fit(X)


def test_a_probability_can_be_asked_for(tmp_path):
    X = slow()
    plain = PCA(2, solver="krylov").fit(X).certificate_
    assert (plain.certainty, plain.failure_probability, plain.probe_passes, plain.probe_seed) == ("estimated", None, 0, None)
    pca = PCA(2, solver="krylov", certify=1e-9).fit(X)
    probed = pca.certificate_
    assert (probed.certainty, probed.failure_probability, probed.gap_is_proved) == ("probability", 1e-9, False)
    assert probed.probe_passes > 0 and isinstance(probed.probe_seed, int)
    assert "with probability at least 1 − 1e-9" in str(probed)
    assert solve(X, "krylov", k=2, certify=1e-9).certificate.certainty == "probability"
    pca.save(tmp_path / "m.safetensors")
    kept = load(tmp_path / "m.safetensors").certificate_
    assert (kept.certainty, kept.status, kept.probe_seed) == (probed.certainty, probed.status, probed.probe_seed)
    with pytest.raises(ValueError, match="certify"):
        PCA(2, certify=0.9).fit(X)


def test_rounded_components_have_wider_angles():
    X = slow().astype(np.float32)
    single, double = PCA(2, tol=1e-10).fit(X).certificate_, PCA(2, tol=1e-10).fit(X.astype(np.float64)).certificate_
    assert (single.angle_bounds >= 6e-8).all() and (double.angle_bounds < 6e-8).all()
    assert single.subspace_angle_bound >= 6e-8 and "float32" in str(single)


def test_the_default_tolerance_is_that_of_the_command_line():
    X = slow()
    assert PCA().tol is None
    np.testing.assert_array_equal(PCA(2).fit(X).components_, PCA(2, tol=1e-6).fit(X).components_)
    assert PCA(2, verbose=1).fit(X)._fitted.tol == 1e-6


def test_a_share_that_residuals_leave_open_is_said():
    # Four equal eigenvalues: two components explain half of the variance, to rounding.
    X = np.eye(4)
    with pytest.warns(ConvergenceWarning, match="between 2 and 3 components explain the share of variance"):
        PCA(0.5, center=False).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert PCA(0.6, center=False, angle_tol=None).fit(X + np.diag([3, 2, 1, 0])).n_components_ == 2
