"""A citizen of scikit-learn: parameters, copies, pipelines, searches, weights, names."""

import copy
import pickle

import joblib
import numpy as np
import pytest
import sklearn
from data import sparse_counts, with_spectrum
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from hbpca import PCA, Certificate


@pytest.fixture
def X():
    return with_spectrum(80, 9, 9)


def test_copies_transform_like_the_original(X, tmp_path):
    pca = PCA(3, whiten=True).fit(X)
    joblib.dump(pca, tmp_path / "pca")
    for other in (pickle.loads(pickle.dumps(pca)), copy.deepcopy(pca), joblib.load(tmp_path / "pca")):
        np.testing.assert_array_equal(other.transform(X), pca.transform(X))
        assert str(other.certificate_) == str(pca.certificate_)
        assert other.history_ == pca.history_
        other.save(tmp_path / "model.safetensors")
    fresh = clone(pca)
    assert fresh.get_params() == pca.get_params() and not hasattr(fresh, "components_")


def test_pipeline_search_and_processes(X):
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    search = GridSearchCV(make_pipeline(PCA(), LogisticRegression()), {"pca__n_components": [1, 2, 3]}, n_jobs=2, cv=3).fit(
        X, y
    )
    assert search.best_params_["pca__n_components"] in (1, 2, 3)
    by_likelihood = GridSearchCV(PCA(), {"n_components": [1, 2, 8]}, cv=3).fit(X)
    assert by_likelihood.best_params_["n_components"] == 8
    fits = joblib.Parallel(n_jobs=2)(joblib.delayed(PCA(k).fit)(X) for k in (1, 2))
    assert [fit.n_components_ for fit in fits] == [1, 2]


@pytest.mark.parametrize("copy", [True, False])
def test_the_data_are_left_as_they_are(X, copy):
    before = X.copy()
    pca = PCA(2, copy=copy, whiten=True, scale="std").fit(X)
    pca.inverse_transform(pca.fit_transform(X))
    np.testing.assert_array_equal(X, before)


def test_weights_count_rows(X):
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted, repeated = PCA(3).fit(X, sample_weight=weights), PCA(3).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)
    np.testing.assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-12)
    np.testing.assert_allclose(weighted.mean_, repeated.mean_, rtol=1e-12)
    for bad, text in [
        (np.ones(3), "3 given where 80"),
        (-np.ones(80), "weight = -1"),
        (np.zeros(80), "all zero"),
        (np.ones((80, 2)), "one weight for each row"),
    ]:
        with pytest.raises(ValueError, match=text):
            PCA().fit(X, sample_weight=bad)


def test_weights_are_routed(X):
    weights = np.arange(80.0)
    y = np.arange(80) % 2
    with sklearn.config_context(enable_metadata_routing=True):
        pca = PCA(2).set_fit_request(sample_weight=True)
        logistic = LogisticRegression().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(pca, logistic).fit(X, y, sample_weight=weights)
    expected = PCA(2).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[0].components_, expected.components_)


def test_warm_start_begins_where_the_last_fit_ended():
    X = with_spectrum(3000, 50, 50)
    pca = PCA(1, solver="power", tol=1e-9, max_passes=500, warm_start=True).fit(X)
    cold = pca.n_passes_
    assert pca.fit(X).n_passes_ < cold / 2
    assert pca.fit(X[:, :40]).n_features_in_ == 40  # other columns: a start from nothing


def test_changed_components_are_used_but_not_saved(X, tmp_path):
    pca = PCA(2).fit(X)
    before = pca.transform(X)
    pca.components_ = -pca.components_
    np.testing.assert_array_equal(pca.transform(X), -before)
    with pytest.raises(ValueError, match="changed after the fit"):
        pca.save(tmp_path / "model.safetensors")


def test_whitened_scores_have_unit_variance(X):
    scores = PCA(4, whiten=True).fit_transform(X)
    np.testing.assert_allclose(np.cov(scores.T), np.eye(4), atol=1e-9)
    flat = PCA(2, whiten=True).fit_transform(np.outer([1.0, 2.0, 3.0], [1.0, 0.0]))
    np.testing.assert_allclose(flat[:, 1], 0, atol=1e-12)  # nothing is made of no variance


@pytest.mark.filterwarnings("ignore:PCA did not converge")
def test_generators_draw_seeds(X):
    def components(random_state):
        return PCA(1, solver="vr-pca", max_passes=3, tol=0.5, random_state=random_state).fit(X).history_[0]["theta"]

    assert components(None) == components(0) != components(1)
    assert components(np.random.RandomState(5)) == components(np.random.RandomState(5))
    assert components(np.random.default_rng(5)) != components(np.random.default_rng(6))
    with pytest.raises(ValueError, match="whole number"):
        PCA(random_state="x").fit(X)


@pytest.mark.parametrize(
    "params, text",
    [
        ({"n_components": "most"}, '"mle" or None for all'),
        (
            {"n_components": 10, "svd_solver": "full"},
            r"must be between 0 and min\(n_samples, n_features\)=9 with svd_solver='full'",
        ),
        ({"n_components": "mle", "svd_solver": "arpack"}, "cannot be a string with svd_solver='arpack'"),
        ({"svd_solver": "lapack"}, "choose one of auto, full"),
        ({"svd_solver": "full", "solver": "krylov"}, "give one"),
        ({"iterated_power": -1}, "iterated_power = -1"),
        ({"n_oversamples": 0}, "n_oversamples = 0"),
        ({"power_iteration_normalizer": "SVD"}, "choose one of auto, QR"),
        ({"n_components": 10}, "n_components = 10: 80 rows × 9 columns have from 1 to 9 components"),
        ({"n_components": 1.5}, "share of the variance"),
        ({"n_components": -1}, "share of the variance"),
        ({"solver": "full"}, "choose one of auto, covariance"),
        ({"solver": "power", "n_components": 2}, "finds one component"),
        ({"scale": "robust"}, 'choose None, "std", "minmax" or, for genotypes, "hwe"'),
        ({"tol": 2.0}, "tol = 2"),
        ({"max_passes": 0}, "max_passes = 0"),
        ({"max_seconds": -1}, "max_seconds = -1"),
        ({"momentum": "nesterov"}, '"adaptive", "dynamic" or "oracle"'),
        ({"momentum": "oracle"}, "lambda2"),
        ({"momentum": "adaptive", "lambda2": 1.0}, "leave lambda2 out"),
        ({"solver": "vr-pca", "n_components": 1, "eta": 0.1, "batch": 0}, "batch = 0 rows"),
        ({"solver": "vr-pca", "n_components": 1, "eta": 0.1, "batch": "lots"}, "share such as 1%"),
        ({"solver": "vr-pca", "n_components": 1, "eta": 0.1, "epoch": 0}, "epoch = 0"),
        ({"solver": "vr-pca", "n_components": 1, "eta": -1.0}, "eta = -1"),
    ],
)
def test_wrong_parameters_are_named(X, params, text):
    with pytest.raises(ValueError, match=text):
        PCA(**params).fit(X)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_scores_that_do_not_fit_are_refused(X):
    pca = PCA(2).fit(X)
    with pytest.raises(ValueError, match="3 given where 2"):
        pca.inverse_transform(np.ones((4, 3)))
    with pytest.raises(ValueError, match="9 features"):
        pca.transform(X[:, :8])
    with pytest.raises(ValueError, match="row 2 of X holds NaN"):
        pca.score_samples(np.where(np.arange(80)[:, None] == 2, np.nan, X))
    with pytest.raises(ValueError, match="row 3 of X holds"):
        PCA().fit(X).score_samples(np.where(np.arange(80)[:, None] == 3, np.inf, X))


def test_a_singular_covariance_has_no_likelihood():
    pca = PCA().fit(with_spectrum(20, 60, 5))
    with pytest.raises(ValueError, match="fit with a smaller n_components"):
        pca.get_precision()
    with pytest.warns(RuntimeWarning, match="fit with a smaller n_components"):
        assert pca.score(np.ones((2, 60))) == -np.inf


def test_the_certificate_is_a_sentence_and_a_mapping(X):
    certificate = PCA(2).fit(X).certificate_
    assert isinstance(certificate, Certificate)
    assert str(certificate).startswith("2 eigenvalues each lie within")
    assert str(certificate) in repr(certificate)
    assert set(certificate) >= {"residuals", "eigenvalue_intervals", "gap_is_proved"}
    assert len(certificate) == len(dict(certificate))
    low, high = certificate["eigenvalue_intervals"].T
    exact = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1][:2]
    assert ((low <= exact) & (exact <= high)).all()
    assert certificate.worst <= 1e-6
    with pytest.raises(KeyError):
        certificate["worst"]
    with pytest.raises(ValueError):
        certificate.residuals[0] = 0
    with pytest.raises(AttributeError):
        certificate.gap_is_proved = True


def test_a_card_for_notebooks(X):
    pca = PCA(3)
    assert "<rect" not in pca._repr_html_()
    assert "<rect" in pca.fit(X)._repr_html_() and str(pca.certificate_) in pca._repr_html_()
    assert "<rect" in pca._repr_mimebundle_()["text/html"]


def test_sparse_stays_sparse_in_a_pipeline():
    X = sparse_counts(200, 30, 0.3)
    scores = make_pipeline(PCA(3, scale="std")).fit_transform(X)
    assert scores.shape == (200, 3)
