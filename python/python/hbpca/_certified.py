"""What every estimator here has: attributes of a fit with its certificate, and warnings where it falls short."""

from __future__ import annotations

import warnings

import numpy as np

from hbpca._certificate import Certificate
from hbpca._compat import ConvergenceWarning

_ADVICE = {
    "budget": "Raise max_passes or max_seconds, raise tol, or choose solver='auto'.",
    "stagnated": "The rounding of the products allows no smaller residual: raise tol.",
    "interrupted": "A callback stopped the fit; call fit with warm_start=True to go on.",
}

#: The sine of an angle that is not known to this is worth a warning.
_KNOWN_ANGLE = 0.1


class CertifiedMixin:
    """Of an estimator with `outcome_`, `certificate_` and the compiled half's `_fitted`."""

    @staticmethod
    def _attributes(fitted, dtype):
        """Fitted attributes; float32 data get float32 ones, but means and scales keep what the data's own type rounds off."""
        components, shift = fitted.components.astype(dtype, copy=False), fitted.shift
        k, d = components.shape
        names = fitted.feature_names
        return {
            **({} if names is None else {"feature_names_in_": np.asarray(names, dtype=object)}),
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
            "missing_values_": fitted.missing_values,
            "history_": fitted.history,
            "n_passes_": fitted.passes,
            "solver_": fitted.solver,
            "chosen_because_": fitted.chosen_because,
            "outcome_": fitted.outcome,
        }

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def _warn(self):
        if not self._fitted.has_sample_variance:
            warnings.warn(
                f"the rows weigh {self._fitted.weight:g} in all, which leaves no n - 1: explained_variance_ is 0. "
                "Weights count rows; components and ratios do not depend on their scale.",
                UserWarning,
                stacklevel=3,
            )
        if self._fitted.possible_k is not None:
            fewest, most = self._fitted.possible_k
            warnings.warn(
                f"between {fewest} and {most} components explain the share of variance, {self.n_components_} are kept: "
                "residuals leave that open; a smaller tol may decide.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.outcome_ == "converged":
            self._warn_of_angles()
            return
        filled = self.missing_values_
        if self.outcome_ == "budget" and filled is not None and not filled.get("is_stationary_point", True):
            warnings.warn(
                f"{type(self).__name__} did not converge: {filled['sentence']}. Raise em_max_rounds or em_tol, "
                "choose fewer components, or set em_ridge.",
                ConvergenceWarning,
                stacklevel=3,
            )
            return
        warnings.warn(
            f"{type(self).__name__} did not converge: solver {self.solver_!r} ended with {self.outcome_!r} after "
            f"{self.n_passes_:.1f} passes; the largest relative residual is {self.certificate_.worst:.1e} where "
            f"tol = {self._fitted.tol:g} was asked for. {_ADVICE[self.outcome_]}",
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
