"""The estimator."""

from __future__ import annotations

import os
import warnings
from typing import Any, NamedTuple

import numpy as np

from hbpca import _display, _hbpca
from hbpca._certificate import Certificate
from hbpca._compat import (
    HAVE_SKLEARN,
    BaseEstimator,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    ConvergenceWarning,
    TransformerMixin,
    check_is_fitted,
    validate_data,
    with_callbacks,
)
from hbpca._input import file_of, refuse_malformed, rows_of
from hbpca._observers import FitTask, told_together
from hbpca._progress import ProgressLine
from hbpca._settings import Choices, Settings, wanted_components

_ADVICE = {
    "budget": "Raise max_passes or max_seconds, raise tol, or choose solver='auto'.",
    "stagnated": "The rounding of the products allows no smaller residual: raise tol.",
    "interrupted": "A callback stopped the fit; call fit with warm_start=True to go on.",
}


#: The sine of an angle that is not known to this is worth a warning.
_KNOWN_ANGLE = 0.1


def _weights(sample_weight):
    weights = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.ndim != 1:
        raise ValueError(f"sample_weight has {weights.ndim} dimensions where 1 is needed: one weight for each row")
    return weights


class _Maps(NamedTuple):
    """What `_hbpca.transform` reads."""

    components: np.ndarray
    shift: np.ndarray | None
    scale: np.ndarray | None
    factors: np.ndarray | None


class _Gaussian(NamedTuple):
    """What `_hbpca.covariance`, `precision` and `log_likelihoods` read."""

    maps: _Maps
    variances: np.ndarray
    noise: float


def _exact(values):
    return None if values is None else np.ascontiguousarray(values, dtype=np.float64)


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator):
    """Principal components with a proof: a drop-in for `sklearn.decomposition.PCA`.

    Works on dense and sparse data, in memory or mapped, without copying it and without making it dense.

    Parameters
    ----------
    n_components : int, float or None, default=None
        A number of components; or a share of the variance in (0, 1), which the fewest components that exceed it carry; or
        `None` for all components whose variance is not zero to rounding, at most min(n_samples, n_features).
    copy : bool, default=True
        Accepted for compatibility: X is never changed and never copied where its layout allows.
    whiten : bool, default=False
        Divide scores by their standard deviation.
    center : bool, default=True
        Subtract the means; `False` gives a truncated SVD.
    scale : {None, "std", "minmax"}, default=None
        Divide each column by its standard deviation, as `StandardScaler` does, or by its range. Sparse data stays sparse.
    solver : str, default="auto"
        "auto", "covariance", "krylov" or "anchored"; for one component also "power", "power-m", "oja", "vr-pca",
        "vr-power-m" and "vr-hb-power".
    tol : float or None, default=None
        A component has converged when its residual is at most tol times its own eigenvalue; `None` is 1e-6.
    angle_tol : float or None, default=None
        Besides, go on until the sine of the largest angle between the components and the true ones is at most this.
    certify : float or None, default=None
        A probability, such as 1e-9: a probe with random vectors follows the fit, and what `certificate_` says of angles
        then fails with this probability at most. Without it angles are proved or estimated, as `certificate_.certainty` says.
    max_passes, max_seconds : float or None, default=None
        No step is begun that would read more passes over the data, or after this time.
    eta, momentum, lambda2, batch, epoch : default=None
        Parameters of the paper's solvers: step size, "adaptive" or "oracle" momentum, the λ₂ of the latter, rows of a
        mini-batch (a number, a share, or text such as "1%"), steps of an epoch.
    random_state : int, numpy generator or None, default=None
        Seed of the start vector and of the batches. `None` is a fixed seed: the same data give the same bits.
    threads : int or None, default=None
        Threads; `None` for all. The result does not depend on their number.
    memory_limit : int, str or None, default=None
        Bytes, or text such as "4G", that a fit of a file may take; `None` is half of what the machine or its control group
        allows. A file (a path, or with a limit an `np.memmap` of a whole `.npy`) that does not fit is read from disk in every
        pass. Other arrays are in memory already and are not limited.
    warm_start : bool, default=False
        Start from the components of the last fit.
    callback : callable or None, default=None
        Called with a dict at each certified iterate; stops the fit by returning something true. For scikit-learn's own
        callbacks (1.9) use `set_callbacks`.
    verbose : int, default=0
        1 draws a line of progress.

    Attributes
    ----------
    components_ : (n_components_, n_features_in_) array, the entry of largest magnitude of each row positive
    explained_variance_ : variances with denominator n − 1
    explained_variance_ratio_ : shares of the total variance
    singular_values_ : of the prepared data
    mean_ : what is subtracted from each row, float64
    scale_ : what each column is divided by, float64, or None
    noise_variance_ : mean of the variances left out
    n_components_, n_samples_, n_features_in_, feature_names_in_
    n_samples_seen_ : rows seen by `partial_fit`
    certificate_ : `Certificate`, what is proved; `print` it
    history_ : one dict for each certified iterate
    n_passes_ : rows read by the solver, divided by n
    solver_, chosen_because_ : the solver that ran, and why
    outcome_ : "converged", "budget", "stagnated" or "interrupted"

    Examples
    --------
    >>> import numpy as np
    >>> from hbpca import PCA
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> PCA(n_components=2).fit(X).singular_values_.round(4)
    array([6.3006, 0.5498])
    """

    def __init__(
        self,
        n_components=None,
        *,
        copy=True,
        whiten=False,
        center=True,
        scale=None,
        solver="auto",
        tol=None,
        angle_tol=None,
        certify=None,
        max_passes=None,
        max_seconds=None,
        eta=None,
        momentum=None,
        lambda2=None,
        batch=None,
        epoch=None,
        random_state=None,
        threads=None,
        memory_limit=None,
        warm_start=False,
        callback=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.center = center
        self.scale = scale
        self.solver = solver
        self.tol = tol
        self.angle_tol = angle_tol
        self.certify = certify
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.eta = eta
        self.momentum = momentum
        self.lambda2 = lambda2
        self.batch = batch
        self.epoch = epoch
        self.random_state = random_state
        self.threads = threads
        self.memory_limit = memory_limit
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    # Fitting

    def fit(self, X, y=None, sample_weight=None):
        """Find the components of X.

        Parameters
        ----------
        X : (n_samples, n_features) array, SciPy sparse matrix or array, data frame, or the name of a file or a folder of parts
        y : ignored
        sample_weight : (n_samples,) array or None; a weight of 2 counts a row twice. With weights a file is read into memory
        """
        self._forget_chunks()
        self._fit(X, y, sample_weight)
        self._warn()
        return self

    def partial_fit(self, X, y=None, sample_weight=None, check_input=True):
        """Add the rows of X to those seen so far, and find the components of all of them.

        Exact: what is kept are the number of rows, the means and the centred scatter of all columns in float64, so that after
        the last chunk the result is that of one `fit` on all rows, up to rounding, whatever the chunks were; the certificate
        holds for all rows seen. No row is kept. The scatter takes n_features² numbers: up to 128 MiB, that is 4096 features.
        Beyond that `partial_fit` refuses; `fit` a file or a memory map instead, with `memory_limit` where it does not fit into
        memory.

        Every attribute is there after every call, and `n_samples_seen_` counts the rows. The first call fixes
        `n_features_in_`. After `fit`, which keeps no statistics of its rows, it begins anew, with a warning.
        The solver is always "covariance", which needs no rows, whatever `solver` says; callbacks are not called.

        Parameters
        ----------
        X : (n_samples, n_features) array, SciPy sparse matrix or array, or data frame
        y : ignored
        sample_weight : (n_samples,) array or None; a weight of 2 counts a row twice
        check_input : bool; `False` for arrays that are known to be two-dimensional of float32 or float64
        """
        before = getattr(self, "_moments", None)
        if before is None and hasattr(self, "components_"):
            warnings.warn(
                "partial_fit begins anew: fit keeps no statistics of the rows it saw; give all rows to partial_fit, or to fit",
                UserWarning,
                stacklevel=2,
            )
        if check_input:
            X = self._validated(X, reset=before is None)
        settings = self._settings()
        moments = _hbpca.Moments.with_rows(before, rows_of(X), settings, _weights(sample_weight))
        fitted = moments.fit(settings, wanted_components(self.n_components))
        vars(self).update(self._attributes(fitted, X.dtype), _moments=moments, n_samples_seen_=moments.n_samples)
        self._warn()
        return self

    def _forget_chunks(self):
        for name in ("_moments", "n_samples_seen_"):
            vars(self).pop(name, None)

    @with_callbacks
    def _fit(self, X, y, sample_weight):
        file = file_of(X, self.memory_limit)
        X = self._validated(X, reset=True) if file is None else X
        weights = _weights(sample_weight)
        task = FitTask.begin(self, X, y, sample_weight)
        progress = ProgressLine(self.tol) if self.verbose else None
        fitted = _hbpca.fit(
            rows_of(X) if file is None else file,
            self._settings(),
            n_components=wanted_components(self.n_components),
            weights=weights,
            callback=told_together(progress, self.callback, task),
            snapshots=task is not None,
        )
        dtype = getattr(X, "dtype", np.dtype(np.float64))
        vars(self).update(self._attributes(fitted, dtype))
        if progress is not None:
            progress.finish(self.history_[-1], self.outcome_)
        if task is not None:
            task.end()

    def fit_transform(self, X, y=None, sample_weight=None):
        """`fit(X)` and `transform(X)`."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def _settings(self):
        start = None
        known = getattr(self, "components_", np.empty((0, 0)))
        if self.warm_start and len(known) > 0 and known.shape[1] == getattr(self, "n_features_in_", None):
            start = self.components_
        choices = {name: getattr(self, name) for name in Choices.__annotations__}
        return Settings.of(choices, solver=self.solver, random_state=self.random_state, start=start)

    @staticmethod
    def _attributes(fitted, dtype):
        """Fitted attributes; float32 data get float32 ones, but means and scales keep what the data's own type rounds off."""
        components, shift = fitted.components.astype(dtype, copy=False), fitted.shift
        k, d = components.shape
        return {
            "_fitted": fitted,
            "components_": components,
            "explained_variance_": fitted.explained_variance.astype(dtype, copy=False),
            "explained_variance_ratio_": fitted.explained_variance_ratio.astype(dtype, copy=False),
            "singular_values_": fitted.singular_values.astype(dtype, copy=False),
            "mean_": np.zeros(d) if shift is None else shift,
            "scale_": fitted.scale,
            "noise_variance_": fitted.noise_variance,
            "n_components_": k,
            "n_features_in_": d,
            "n_samples_": fitted.n_samples,
            "certificate_": Certificate.from_numbers(fitted.certificate, dtype),
            "history_": fitted.history,
            "n_passes_": fitted.passes,
            "solver_": fitted.solver,
            "chosen_because_": fitted.chosen_because,
            "outcome_": fitted.outcome,
        }

    def _warn(self):
        if self.outcome_ == "converged":
            self._warn_of_angles()
            return
        warnings.warn(
            f"PCA did not converge: solver {self.solver_!r} ended with {self.outcome_!r} after {self.n_passes_:.1f} passes; "
            f"the largest relative residual is {self.certificate_.worst:.1e} where tol = {self._fitted.tol:g} was asked for. "
            f"{_ADVICE[self.outcome_]}",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _warn_of_angles(self):
        unknown = self.certificate_.undetermined(_KNOWN_ANGLE)
        if not unknown or not self._fitted.gap_is_known:
            return
        names = ", ".join(str(i + 1) for i in unknown[:10]) + (f" and {len(unknown) - 10} more" if len(unknown) > 10 else "")
        warnings.warn(
            f"the angle of component {names} to the true one is not known to {_KNOWN_ANGLE:g}: eigenvalues are too close "
            f"for tol = {self._fitted.tol:g}, or n_components cuts a cluster of them. Lower tol, set angle_tol, or choose "
            "another n_components; "
            "certificate_.clusters names components that are determined only together.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _validated(self, X, *, reset):
        if getattr(X, "format", "csr") != "csr":
            refuse_malformed(X)  # before SciPy converts it
        # NaN and infinities are found by the compiled half, which names the entry.
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False)

    # Scores

    def transform(self, X):
        """Scores of the rows of X: (n_samples, n_components_), of X's own precision."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return _hbpca.transform(rows_of(X), self._maps())

    def inverse_transform(self, X):
        """Rows from scores: the points nearest to the data within the components."""
        check_is_fitted(self)
        scores = np.asarray(X)
        dtype = scores.dtype if scores.dtype in (np.float32, np.float64) else np.float64
        return _hbpca.inverse_transform(np.ascontiguousarray(scores, dtype=dtype), self._maps())

    def _maps(self):
        factors = self._fitted.whitening_factors if self.whiten else None
        return _Maps(_exact(self.components_), _exact(self.mean_), _exact(self.scale_), factors)

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    # The Gaussian model

    def get_covariance(self):
        """Covariance of the prepared data under the model: that of X itself unless `scale` is set."""
        check_is_fitted(self)
        return _hbpca.covariance(self._gaussian()).astype(self.components_.dtype, copy=False)

    def get_precision(self):
        """Inverse of `get_covariance()`."""
        check_is_fitted(self)
        return _hbpca.precision(self._gaussian()).astype(self.components_.dtype, copy=False)

    def score_samples(self, X):
        """Log-likelihood of each prepared row under the model."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return _hbpca.log_likelihoods(rows_of(X), self._gaussian())

    def score(self, X, y=None):
        """Mean of `score_samples(X)`."""
        return float(self.score_samples(X).mean())

    def _gaussian(self):
        # Whitening changes the scores, not the model of the data.
        maps = self._maps()._replace(factors=None)
        return _Gaussian(maps, _exact(self.explained_variance_), self.noise_variance_)

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file of the command line; `hbpca.load` reads it."""
        check_is_fitted(self)
        if not np.array_equal(self.components_, self._fitted.components.astype(self.components_.dtype)):
            raise ValueError("components_ was changed after the fit, so that its certificate no longer holds: fit again")
        self._fitted.save(path)

    @classmethod
    def _from_fitted(cls, fitted) -> PCA:
        center, scale = fitted.preprocessing
        pca = cls(
            n_components=len(fitted.eigenvalues),
            center=center,
            scale=None if scale == "none" else scale,
            solver=fitted.solver,
            tol=fitted.tol,
            random_state=fitted.seed,
        )
        vars(pca).update(cls._attributes(fitted, np.float64))
        return pca

    # Display

    def plot_scree(self, ax=None) -> Any:
        """Shares of the variance through matplotlib; returns the axes."""
        check_is_fitted(self)
        return _display.scree(self, ax)

    def plot_convergence(self, ax=None) -> Any:
        """Residuals against passes through matplotlib; returns the axes."""
        check_is_fitted(self)
        return _display.convergence(self, ax)

    if HAVE_SKLEARN:

        def _repr_html_inner(self):
            html = super()._repr_html_inner()
            return html + _display.card(self) if hasattr(self, "components_") else html

        def _repr_mimebundle_(self, **kwargs):
            bundle = super()._repr_mimebundle_(**kwargs)
            if "text/html" in bundle and hasattr(self, "components_"):
                bundle["text/html"] += _display.card(self)
            return bundle

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.sparse = True
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
            return tags

    else:

        def _repr_html_(self):
            return _display.card(self) if hasattr(self, "components_") else None
