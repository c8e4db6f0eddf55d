"""The estimator."""

from __future__ import annotations

import os
import warnings
from contextlib import closing
from typing import Any

import numpy as np

from hbpca import _display, _hbpca
from hbpca._certified import CertifiedMixin
from hbpca._chunks import source_of
from hbpca._compat import (
    HAVE_SKLEARN,
    BaseEstimator,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    check_is_fitted,
    sparse_tags,
    validate_data,
    with_callbacks,
)
from hbpca._files import read
from hbpca._input import collected, file_of, is_bed, refuse_malformed, rows_of
from hbpca._maps import Gaussian, Holes, Maps, exact
from hbpca._names import Named, check_file_names, columns_named, loadings
from hbpca._observers import FitTask, told_together
from hbpca._partitions import ROUND_COST, Scores, engine_of, lazily_transformed, names_of, partitions_of
from hbpca._progress import ProgressLine
from hbpca._ranks import agreed, fit_on_ranks, refuse_other_names
from hbpca._settings import Choices, Settings, wanted_components
from hbpca._svd_solver import OVERSAMPLES, request


def _weights(sample_weight):
    weights = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.ndim != 1:
        raise ValueError(f"sample_weight has {weights.ndim} dimensions where 1 is needed: one weight for each row")
    return weights


class PCA(ClassNamePrefixFeaturesOutMixin, CertifiedMixin, TransformerMixin, CallbackSupportMixin, BaseEstimator):
    """Principal components with a proof: a drop-in for `sklearn.decomposition.PCA`.

    Works on dense and sparse data, in memory or mapped, without copying it and without making it dense.

    Parameters
    ----------
    n_components : int, float, "mle" or None, default=None
        A number of components, 0 included; or a share of the variance in (0, 1), which the fewest components that exceed it
        carry; or "mle" for those that the spectrum speaks for (Minka 2000), where there are no fewer rows than columns; or
        `None` for min(n_samples, n_features): those without variance come last, and `certificate_.status` tells them.
    copy : bool, default=True
        Accepted for compatibility: X is never changed and never copied where its layout allows.
    whiten : bool, default=False
        Divide scores by their standard deviation. As in scikit-learn, `score` and `get_covariance` are then of the covariance
        U diag(v(v − σ²)) Uᵀ + σ²I of variances v and noise σ², which is not that of the data.
    center : bool, default=True
        Subtract the means; `False` gives a truncated SVD.
    scale : {None, "std", "minmax", "hwe"}, default=None
        Divide each column by its standard deviation, as `StandardScaler` does, or by its range. Sparse data stays sparse.
        "hwe" is for genotypes (`.bed`): √(2f(1 − f)) of the allele frequency f.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}, default="auto"
        scikit-learn's argument. "full", "covariance_eigh" and "arpack" ask for the accuracy of rounding where `tol` is `None`.
        "covariance_eigh" is `solver="covariance"`, "arpack" `solver="krylov"`; for the others the solver is chosen by size.
        What ran is `solver_`.
    solver : str, default="auto"
        "auto", "covariance", "krylov" or "anchored"; for one component also "power", "power-m", "oja", "vr-pca",
        "vr-power-m" and "vr-hb-power".
    tol : float or None, default=None
        A component has converged when its residual is at most tol times its own eigenvalue; `None` is 1e-6, or to rounding
        where `svd_solver` asks for it: that too, and on for as long as rounding lets residuals fall.
    iterated_power, n_oversamples, power_iteration_normalizer : default="auto", 10, "auto"
        scikit-learn's arguments of "randomized": other values of the first two ask for the accuracy of rounding, too. Blocks
        are always orthonormalised.
    angle_tol : float or None, default=None
        Besides, go on until the sine of the largest angle between the components and the true ones is at most this.
    certify : float or None, default=None
        A probability, such as 1e-9: a probe with random vectors follows the fit, and what `certificate_` says of angles
        then fails with this probability at most. Without it angles are proved or estimated, as `certificate_.certainty` says.
    missing : {"error", "drop-rows", "mean", "em"}, default="error"
        What becomes of missing values (NaN). They are refused; or rows that have one are left out, and `transform` gives
        NaN for them; or each is the mean of its column, as it is in `transform`; or each is what the components say of it,
        found by expectation–maximisation, and `transform` gives least squares on what a row has. The certificate is of the
        completed matrix, which for "em" is a stationary point and nothing more: `missing_values_` tells how near. X is
        copied once where something is missing, in float64 for "em". For genotypes (`.bed`), which stay packed, the default is
        "mean", as everywhere.
    em_tol, em_max_rounds, em_ridge : default=None
        "em" stops when one more round would change what was filled in by at most `em_tol` (1e-6) of the spread, or after
        `em_max_rounds` (1000). A ridge draws what is filled in towards the mean (0: not at all).
    max_passes, max_seconds : float or None, default=None
        No step is begun that would read more passes over the data, or after this time.
    eta, momentum, lambda2, batch, epoch : default=None
        Parameters of the paper's solvers: step size, "adaptive", "dynamic" or "oracle" momentum, the λ₂ of the latter, rows
        of a mini-batch (a number, a share, or text such as "1%"), steps of an epoch.
    random_state : int, numpy generator or None, default=None
        Seed of the start vector and of the batches. `None` is a fixed seed: the same data give the same bits.
    threads : int or None, default=None
        Threads; `None` for all. The result does not depend on their number.
    memory_limit : int, str or None, default=None
        Bytes, or text such as "4G", that a fit of a file or of rows in chunks may take; `None` is half of what the machine or
        its control group allows. A file (a path, or with a limit an `np.memmap` of a whole `.npy`) or a source of chunks that
        does not fit is read in every pass. Other arrays are in memory already and are not limited.
    disk_rate : float or None, default=None
        Bytes a second that rows on disk, or in chunks, come at, such as 200e6: the slower, the more a solver of few passes is
        worth to `solver="auto"`. `None` counts with a nominal 1e9.
    comm : communicator or None, default=None
        One of mpi4py, or anything with its `Get_rank`, `Get_size`, `Send`, `Recv` and `Bcast` of buffers: every rank gives its
        own rows to `fit` and ends with the same components of all ranks' rows.
    round_cost : float or None, default=None
        Seconds that a round of a cluster takes beside its products, for Dask, Ray and Spark; `None` is a nominal cost of each.
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
    loadings_ : `components_` transposed, a pandas frame with names where they are known
    n_components_, n_samples_, n_features_in_, feature_names_in_
    n_samples_seen_ : rows seen by `partial_fit`
    missing_values_ : what was done about missing values, a dict, or None where there were none
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
        svd_solver="auto",
        solver="auto",
        tol=None,
        iterated_power="auto",
        n_oversamples=OVERSAMPLES,
        power_iteration_normalizer="auto",
        angle_tol=None,
        certify=None,
        missing="error",
        em_tol=None,
        em_max_rounds=None,
        em_ridge=None,
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
        disk_rate=None,
        comm=None,
        round_cost=None,
        warm_start=False,
        callback=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.center = center
        self.scale = scale
        self.svd_solver = svd_solver
        self.solver = solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.angle_tol = angle_tol
        self.certify = certify
        self.missing = missing
        self.em_tol = em_tol
        self.em_max_rounds = em_max_rounds
        self.em_ridge = em_ridge
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
        self.disk_rate = disk_rate
        self.comm = comm
        self.round_cost = round_cost
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    # Fitting

    def fit(self, X, y=None, sample_weight=None):
        """Find the components of X.

        Parameters
        ----------
        X : (n_samples, n_features) array, SciPy sparse matrix or array, data frame, or the name of a file or a folder of parts;
            or rows in chunks that can be read again: an array of h5py, zarr or PyTables, a pyarrow dataset, a lazy frame of
            polars, an Arrow stream, a list of two-dimensional arrays, an object whose `__iter__` begins anew, or a function
            that returns an iterator of chunks. They are read once, and again in every pass where they do not fit
            `memory_limit`;
            or rows of a cluster: a `dask.array` or `dask.dataframe`, a `ray.data.Dataset`, a Spark RDD or DataFrame
        y : ignored
        sample_weight : (n_samples,) array or None; a weight of 2 counts a row twice, one of 0 not at all
        """
        self._forget_chunks()
        if getattr(self, "comm", None) is not None:
            self._fit_on_ranks(X, sample_weight)
        elif engine_of(X) is not None:
            self._fit_partitions(X, sample_weight)
        else:
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
        with columns_named(self):
            moments = _hbpca.Moments.with_rows(before, rows_of(X), settings, _weights(sample_weight))
        fitted = moments.fit(settings, self._wanted())
        vars(self).update(self._attributes(fitted, X.dtype), _moments=moments, n_samples_seen_=moments.n_samples)
        self._warn()
        return self

    def _forget_chunks(self):
        for name in ("_moments", "n_samples_seen_"):
            vars(self).pop(name, None)

    @with_callbacks
    def _fit(self, X, y, sample_weight):
        given = file_of(X, self.memory_limit) or source_of(X, self.memory_limit)
        X = self._validated(X, reset=True) if given is None else X
        weights = _weights(sample_weight)
        dtype = getattr(X if given is None else given, "dtype", np.dtype(np.float64))
        task = FitTask.begin(self, X, y, sample_weight, dtype)
        progress = ProgressLine(self.tol) if self.verbose else None
        with columns_named(self):
            fitted = _hbpca.fit(
                rows_of(X) if given is None else given,
                self._settings(),
                n_components=self._wanted(),
                weights=weights,
                callback=told_together(progress, self.callback, task),
                snapshots=task is not None,
            )
        if given is not None:
            vars(self).pop("feature_names_in_", None)
        vars(self).update(self._attributes(fitted, dtype))
        if progress is not None:
            progress.finish(self.history_[-1], self.outcome_)
        if task is not None:
            task.end()

    def _fit_on_ranks(self, X, sample_weight):
        def own():
            if file_of(X, self.memory_limit) is not None:
                raise ValueError(
                    "with comm= every rank gives its own rows, in memory: `hbpca.read` them, or run the command under mpirun"
                )
            return self._validated(X, reset=True), _weights(sample_weight), self._settings()

        X, weights, settings = agreed(self.comm, own)
        refuse_other_names(self.comm, getattr(self, "feature_names_in_", None))
        leads = self.comm.Get_rank() == 0
        progress = ProgressLine(self.tol) if self.verbose and leads else None
        fitted = fit_on_ranks(
            self.comm,
            rows_of(X),
            *X.shape,
            settings,
            n_components=self._wanted(),
            weights=weights,
            callback=told_together(progress, self.callback if leads else None, None),
        )
        vars(self).update(self._attributes(fitted, X.dtype))
        if progress is not None:
            progress.finish(self.history_[-1], self.outcome_)

    def _fit_partitions(self, X, sample_weight):
        if sample_weight is not None:
            raise ValueError("sample_weight is not taken with rows of a cluster")
        progress = ProgressLine(self.tol) if self.verbose else None
        with closing(partitions_of(X)) as partitions, columns_named(Named(partitions.names)):
            fitted = _hbpca.fit_partitions(
                partitions,
                (partitions.n_rows, partitions.n_columns),
                ROUND_COST[engine_of(X)] if getattr(self, "round_cost", None) is None else self.round_cost,
                self._settings(),
                n_components=self._wanted(),
                callback=told_together(progress, self.callback, None),
            )
        vars(self).pop("feature_names_in_", None)
        vars(self).update(
            self._attributes(fitted, partitions.dtype if partitions.dtype == np.float32 else np.dtype(np.float64))
        )
        if partitions.names is not None:
            self.feature_names_in_ = np.asarray(partitions.names, dtype=object)
        if progress is not None:
            progress.finish(self.history_[-1], self.outcome_)

    def fit_transform(self, X, y=None, sample_weight=None):
        """`fit(X)` and `transform(X)`."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def _settings(self):
        start = None
        known = getattr(self, "components_", np.empty((0, 0)))
        if self.warm_start and len(known) > 0 and known.shape[1] == getattr(self, "n_features_in_", None):
            start = self.components_
        choices = {name: getattr(self, name) for name in Choices.__annotations__}
        asked = request(
            self.svd_solver,
            self.solver,
            self.tol,
            iterations=self.iterated_power,
            default_iterations="auto",
            n_oversamples=self.n_oversamples,
            normalizer=self.power_iteration_normalizer,
        )
        return Settings.of(choices, asked, random_state=self.random_state, start=start)

    def _wanted(self):
        return wanted_components(self.n_components)

    def _validated(self, X, *, reset):
        X = collected(X)
        if not reset and isinstance(X, str | os.PathLike):
            return self._read(X)
        if getattr(X, "format", "csr") != "csr":
            refuse_malformed(X)  # before SciPy converts it
        # NaN and infinities are found by the compiled half, which names the entry.
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False)

    def _read(self, path):
        X, _, names = read(path, missing="error" if self.missing == "error" else "nan")
        check_file_names(self, names)
        if X.shape[1] != self.n_features_in_:
            name, found, needed = type(self).__name__, X.shape[1], self.n_features_in_
            raise ValueError(f"{path} has {found} features, but {name} is expecting {needed} features as input")
        return X

    # Scores

    def transform(self, X):
        """Scores of the rows of X, which may be the name of a file or rows in chunks: (n_samples, n_components_), of X's own
        precision.

        Rows of Dask, Ray and Spark have scores of the same engine, computed when they are asked for.
        """
        check_is_fitted(self)
        if engine_of(X) is not None:
            check_file_names(self, names_of(X), given="X")
            dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
            return lazily_transformed(X, Scores(self._for_workers(), dtype), self.n_components_, dtype)
        if is_bed(X):
            return self._fitted.transform_genotypes(os.fspath(X), bool(self.whiten), self._holes())
        source = source_of(X)
        if source is not None:
            return self._transform_chunks(source)
        X = self._validated(X, reset=False)
        with columns_named(self):
            return _hbpca.transform(rows_of(X), self._maps(), self._holes())

    def _for_workers(self):
        """What workers need for scores: names are checked before, and callbacks and communicators stay here."""
        copy = PCA(missing=self.missing, center=self.center, em_ridge=self.em_ridge, whiten=self.whiten)
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_") or name == "_fitted"}
        vars(copy).update(fitted)
        vars(copy).pop("feature_names_in_", None)
        return copy

    def _transform_chunks(self, source):
        check_file_names(self, source.names)
        with columns_named(self):
            scores = [_hbpca.transform(chunk, self._maps(), self._holes()) for chunk in source.chunks()]
        if not scores:
            raise ValueError("the source gives no chunk: there are no rows")
        return np.concatenate(scores)

    def inverse_transform(self, X):
        """Rows from scores: the points nearest to the data within the components."""
        check_is_fitted(self)
        scores = np.asarray(X)
        dtype = scores.dtype if scores.dtype in (np.float32, np.float64) else np.float64
        return _hbpca.inverse_transform(np.ascontiguousarray(scores, dtype=dtype), self._maps())

    def _holes(self):
        return Holes(self.missing, bool(self.center), self.em_ridge)

    def _maps(self):
        factors = self._fitted.whitening_factors if self.whiten else None
        return Maps(exact(self.components_), exact(self.mean_), exact(self.scale_), factors)

    @property
    def loadings_(self):
        """The components, one a column and one feature a row: a frame with names where pandas is there and names are known."""
        check_is_fitted(self)
        return loadings(self)

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
        maps = self._maps()._replace(factors=None)
        return Gaussian(maps, exact(self.explained_variance_), self.noise_variance_, bool(self.whiten))

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file of the command line; `hbpca.load` reads it."""
        check_is_fitted(self)
        if not np.array_equal(self.components_, self._fitted.components.astype(self.components_.dtype)):
            raise ValueError("components_ was changed after the fit, so that its certificate no longer holds: fit again")
        names = getattr(self, "feature_names_in_", None)
        self._fitted.save(path, None if names is None else list(names))

    @classmethod
    def _from_fitted(cls, fitted) -> PCA:
        center, scale = fitted.preprocessing
        missing, ridge = fitted.missing
        pca = cls(
            n_components=len(fitted.eigenvalues),
            center=center,
            scale=None if scale == "none" else scale,
            solver=fitted.solver,
            tol=fitted.tol,
            random_state=fitted.seed,
            missing=missing,
            em_ridge=ridge or None,
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
            tags = sparse_tags(super().__sklearn_tags__())
            tags.input_tags.allow_nan = self.missing != "error"
            return tags

    else:

        def _repr_html_(self):
            return _display.card(self) if hasattr(self, "components_") else None
