"""With NumPy alone: `PCA` works, minus scikit-learn's base classes. Run as a script in an environment without the rest."""

import importlib.util
import pickle
import warnings

import numpy as np

import hbpca

assert importlib.util.find_spec("sklearn") is None and importlib.util.find_spec("scipy") is None

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 6)) * 0.6 ** np.arange(6) + 5
pca = hbpca.PCA(n_components=2).fit(X)
values, vectors = np.linalg.eigh(np.cov(X.T))
np.testing.assert_allclose(pca.explained_variance_, values[::-1][:2], rtol=1e-10)
assert (np.abs(np.sum(pca.components_ * vectors[:, ::-1].T[:2], axis=1)) > 1 - 1e-10).all()
scores = pca.fit_transform(X)
np.testing.assert_allclose(pca.inverse_transform(scores) @ pca.components_.T, X @ pca.components_.T, atol=1e-9)
np.testing.assert_array_equal(pickle.loads(pickle.dumps(pca)).transform(X), scores)
assert pca.get_feature_names_out().tolist() == ["pca0", "pca1"]
assert pca.get_params()["n_components"] == 2 and pca.set_params(tol=1e-4).tol == 1e-4
assert repr(pca) == "PCA(n_components=2, tol=0.0001)", repr(pca)
assert "<rect" in pca._repr_html_()
assert np.isfinite(pca.score(X))
assert hbpca.solve(X, "vr-hb-power", batch=0.5, epoch=5).outcome == "converged"

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hbpca.PCA(1, solver="power", tol=1e-13, max_passes=2).fit(X)
assert caught[0].category is hbpca.ConvergenceWarning

for wrong, text in [
    (lambda: hbpca.PCA().transform(X), "call fit first"),
    (lambda: pca.transform(X[:, :3]), "3 features"),
    (lambda: hbpca.PCA().fit(X[0]), "2 are needed"),
    (lambda: pca.set_params(k=1), "'k' is no parameter"),
]:
    try:
        wrong()
    except ValueError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
try:
    pca.plot_scree()
except ImportError as error:
    assert "pip install matplotlib" in str(error)
else:
    raise AssertionError("a plot without matplotlib")
print(f"hbpca {hbpca.__version__} works with NumPy {np.__version__} alone")
