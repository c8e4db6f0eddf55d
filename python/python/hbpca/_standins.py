"""The little that `PCA` needs of scikit-learn, for where it is not installed."""

from __future__ import annotations

import inspect

import numpy as np

from hbpca._input import matrix_of


class ConvergenceWarning(UserWarning):
    """The tolerance was not met."""


class NotFittedError(ValueError, AttributeError):
    """A method that needs `fit` first."""


class BaseEstimator:
    """Parameters by name, as scikit-learn has them."""

    @classmethod
    def _parameter_names(cls):
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep=True):
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params):
        """Change some of the constructor's arguments."""
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"{name!r} is no parameter of {type(self).__name__}: choose from {names}")
            setattr(self, name, value)
        return self

    def __repr__(self):
        defaults = inspect.signature(type(self).__init__).parameters
        changed = {k: v for k, v in self.get_params().items() if v is not defaults[k].default}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


class TransformerMixin:
    """Nothing to add: `PCA` defines `fit_transform` itself."""


class ClassNamePrefixFeaturesOutMixin:
    """Names of the scores: the class in lower case and a number."""

    def get_feature_names_out(self, input_features=None):
        """`pca0`, `pca1` and so on."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{i}" for i in range(self._n_features_out)], dtype=object)


def check_is_fitted(estimator):
    """Raise unless `fit` was called."""
    if not hasattr(estimator, "components_"):
        raise NotFittedError(f"This {type(estimator).__name__} instance is not fitted yet: call fit first.")


def validate_data(estimator, X, *, reset=True, accept_sparse=None, dtype=None, ensure_all_finite=False):
    """A two-dimensional array or SciPy CSR matrix of float32 or float64."""
    names = _feature_names(X)
    X = matrix_of(X)
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = names
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} was fitted with {estimator.n_features_in_}"
        )
    return X


def _feature_names(X):
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return np.asarray(list(names), dtype=object)


class CallbackSupportMixin:
    """Nothing: there is no callback protocol to support."""


def with_callbacks(method):
    """The method as it is."""
    return method
