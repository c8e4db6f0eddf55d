"""Rows in batches."""

from __future__ import annotations

from hbpca import _hbpca
from hbpca._input import rows_of
from hbpca._pca import PCA


class IncrementalPCA(PCA):
    """Principal components of rows that come in batches, exact and with a proof: a drop-in for
    `sklearn.decomposition.IncrementalPCA`.

    What is kept between batches are count, means and scatter (up to 4096 columns), not a few components: the result is that of
    one fit on all rows seen, whatever the batches were. It is `PCA` with other parameters; `PCA.partial_fit` does the same.

    Parameters
    ----------
    n_components : int or None, default=None
        `None` is the smaller of rows and columns of the first batch.
    whiten : bool, default=False
        Divide scores by their standard deviation.
    copy : bool, default=True
        Accepted for compatibility: X is never changed.
    batch_size : int or None, default=None
        Accepted for compatibility: `fit` reads X where it is, and the result does not depend on it.

    Attributes
    ----------
    var_ : variances of the columns, with denominator n
    batch_size_ : `batch_size`, or five times the number of columns
    n_samples_seen_ : rows seen
    others : as of `PCA`
    """

    # What `PCA` lets its users choose; not parameters here.
    center, scale = True, None
    svd_solver = solver = "auto"
    iterated_power, n_oversamples, power_iteration_normalizer = "auto", 10, "auto"
    tol = angle_tol = certify = max_passes = max_seconds = None
    missing, em_tol, em_max_rounds, em_ridge = "error", None, None, None
    eta = momentum = lambda2 = batch = epoch = None
    random_state = threads = memory_limit = disk_rate = callback = None
    warm_start = False
    verbose = 0

    def __init__(self, n_components=None, *, whiten=False, copy=True, batch_size=None):
        self.n_components = n_components
        self.whiten = whiten
        self.copy = copy
        self.batch_size = batch_size

    def fit(self, X, y=None):
        """Find the components of X alone: an array, a SciPy sparse matrix or array, or a data frame; `y` is ignored."""
        self._forget_chunks()
        vars(self).pop("components_", None)
        X = self._validated(X, reset=True)
        d = X.shape[1]
        self.batch_size_ = 5 * d if self.batch_size is None else self.batch_size
        if _hbpca.Moments.has_room_for(d):
            return self.partial_fit(X, check_input=False)
        # All at once: there is no room for the statistics that rows to come would be added to.
        self._check_number(X.shape, first=True)
        super().fit(X)
        self.n_samples_seen_ = X.shape[0]
        self.var_ = _hbpca.column_variances(rows_of(X))
        return self

    def fit_transform(self, X, y=None):
        """`fit(X)` and `transform(X)`."""
        return self.fit(X).transform(X)

    def partial_fit(self, X, y=None, check_input=True):
        """Add the rows of X to those seen so far, and find the components of all of them; `y` is ignored."""
        first = not hasattr(self, "components_")
        if check_input:
            X = self._validated(X, reset=first)
        self._check_number(X.shape, first=first)
        super().partial_fit(X, check_input=False)
        self.var_ = self._moments.variances
        return self

    def _wanted(self):
        # The first batch decides.
        known = getattr(self, "components_", None)
        return super()._wanted() if self.n_components is not None or known is None else len(known)

    def _check_number(self, shape, *, first):
        """Refuse numbers of components that do not fit, in scikit-learn's words."""
        wanted, (n, d) = self.n_components, shape
        if wanted is not None and wanted > d:
            raise ValueError(
                f"n_components={wanted} invalid for n_features={d}, need more rows than columns for IncrementalPCA processing"
            )
        if wanted is not None and first and wanted > n:
            raise ValueError(
                f"n_components={wanted} must be less or equal to the batch number of samples {n} for the first partial_fit "
                "call."
            )
        if not first and wanted is not None and wanted != len(self.components_):
            raise ValueError(
                f"n_components = {wanted}: it was {len(self.components_)} in the calls before; set it back, or begin anew with "
                "fit"
            )
