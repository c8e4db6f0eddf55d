"""Components of the data as they are."""

from __future__ import annotations

import numpy as np

from hbpca import _hbpca
from hbpca._certified import CertifiedMixin
from hbpca._compat import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    check_is_fitted,
    sparse_tags,
    validate_data,
)
from hbpca._input import collected, rows_of
from hbpca._maps import Maps, exact
from hbpca._names import columns_named
from hbpca._settings import Settings
from hbpca._svd_solver import request

#: scikit-learn's default.
_ITERATIONS = 5


class TruncatedSVD(ClassNamePrefixFeaturesOutMixin, CertifiedMixin, TransformerMixin, BaseEstimator):
    """Leading singular vectors with a proof: a drop-in for `sklearn.decomposition.TruncatedSVD`.

    Neither centres nor makes sparse data dense. `PCA(center=False)` finds the same components; what differs are the attributes
    below, which follow scikit-learn.

    Parameters
    ----------
    n_components : int, default=2
    algorithm : {"randomized", "arpack"}, default="randomized"
        "arpack" asks for the accuracy of rounding. The solver itself is chosen by size, and is `solver_`.
    n_iter : int, default=5
    n_oversamples : int, default=10
        Other values than these ask for the accuracy of rounding, too.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        Accepted for compatibility: blocks are always orthonormalised.
    random_state : int, numpy generator or None, default=None
        Seed of the start vectors; `None` is a fixed seed.
    tol : float, default=0.0
        Above 0: a component has converged when its residual is at most tol times its own eigenvalue. 0 is 1e-6 for
        "randomized" and to rounding for "arpack".

    Attributes
    ----------
    components_ : (n_components, n_features_in_) array, the entry of largest magnitude of each row positive
    explained_variance_ : variances of the scores, with denominator n
    explained_variance_ratio_ : their shares of the variances of all columns
    singular_values_ : of the data as they are
    certificate_, history_, n_passes_, solver_, chosen_because_, outcome_ : as of `PCA`
    """

    def __init__(
        self,
        n_components=2,
        *,
        algorithm="randomized",
        n_iter=_ITERATIONS,
        n_oversamples=10,
        power_iteration_normalizer="auto",
        random_state=None,
        tol=0.0,
    ):
        self.n_components = n_components
        self.algorithm = algorithm
        self.n_iter = n_iter
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.tol = tol

    def fit(self, X, y=None):
        """Find the components of X, an array, a SciPy sparse matrix or array, or a data frame; `y` is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        """`fit(X)` and `transform(X)`."""
        X = self._validated(X, reset=True)
        with columns_named(self):
            fitted = _hbpca.fit(rows_of(X), self._settings(), n_components=int(self.n_components))
        vars(self).update(self._attributes(fitted, X.dtype))
        del self.mean_, self.scale_, self.noise_variance_, self.n_components_  # not of a truncated SVD
        self._warn()
        scores = _hbpca.transform(rows_of(X), self._maps())
        variance = _hbpca.column_variances(rows_of(scores))
        total = _hbpca.column_variances(rows_of(X)).sum()
        self.explained_variance_ = variance.astype(X.dtype, copy=False)
        self.explained_variance_ratio_ = (variance / total).astype(X.dtype, copy=False)
        return scores

    def _settings(self):
        if self.algorithm not in ("randomized", "arpack"):
            raise ValueError(f"algorithm = {self.algorithm!r}: choose 'randomized' or 'arpack'")
        tol = self.tol if self.tol else None
        asked = request(
            self.algorithm,
            "auto",
            tol,
            iterations=self.n_iter,
            default_iterations=_ITERATIONS,
            n_oversamples=self.n_oversamples,
            normalizer=self.power_iteration_normalizer,
        )
        return Settings.of(
            {"center": False, "tol": tol},
            asked._replace(svd_solver=None),  # its bounds are ARPACK's
            random_state=self.random_state,
        )

    def transform(self, X):
        """Scores of the rows of X: (n_samples, n_components), of X's own precision."""
        check_is_fitted(self)
        return _hbpca.transform(rows_of(self._validated(X, reset=False)), self._maps())

    def inverse_transform(self, X):
        """Rows from scores: the points nearest to the data within the components."""
        check_is_fitted(self)
        scores = np.asarray(X)
        dtype = scores.dtype if scores.dtype in (np.float32, np.float64) else np.float64
        return _hbpca.inverse_transform(np.ascontiguousarray(scores, dtype=dtype), self._maps())

    def _maps(self):
        return Maps(exact(self.components_), None, None, None)

    def _validated(self, X, *, reset):
        # NaN and infinities are found by the compiled half, which names the entry.
        X = collected(X)
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False)

    def __sklearn_tags__(self):
        return sparse_tags(super().__sklearn_tags__())
