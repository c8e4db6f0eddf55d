"""The Gaussian model behind probabilistic PCA (Tipping & Bishop 1999), in the coordinates of the prepared data.

Its covariance is C = U diag(v) Uᵀ + σ²(I − UUᵀ), with v the explained variances (at least σ²) and σ² the noise variance. All
quantities follow from the k components: with z = Uᵀa,

    aᵀC⁻¹a = Σ zᵢ²/vᵢ + ‖a − Uz‖²/σ²,      ln det C = Σ ln vᵢ + (d − k) ln σ².
"""

from __future__ import annotations

import warnings

import numpy as np

# Entries prepared at once; bounds the memory of a likelihood.
CHUNK = 1 << 20


def covariance(components, variances, noise):
    """C, d×d."""
    result = (components.T * np.maximum(variances - noise, 0)) @ components
    result.flat[:: len(result) + 1] += noise
    return result


def precision(components, variances, noise):
    """C⁻¹, d×d."""
    if is_singular(components, variances, noise):
        raise ValueError(refusal(components))
    v = _spread(variances, noise)
    beyond = 1 / noise if noise > 0 else 0.0
    result = (components.T * (1 / v - beyond)) @ components
    result.flat[:: len(result) + 1] += beyond
    return result


def log_likelihoods(X, components, variances, noise, shift, scale):
    """ln N(a | 0, C) for every row x of X, with a = D⁻¹(x − μ); −∞ where C is singular, which gives rows no density."""
    k, d = components.shape
    if is_singular(components, variances, noise):
        warnings.warn(refusal(components), RuntimeWarning, stacklevel=3)
        return np.full(X.shape[0], -np.inf)
    v = _spread(variances, noise)
    log_det = np.log(v).sum() + (np.log(noise) * (d - k) if k < d else 0.0)
    result = np.empty(X.shape[0])
    rows = max(1, CHUNK // d)
    for start in range(0, X.shape[0], rows):
        a = X[start : start + rows]
        a = np.asarray(a if isinstance(a, np.ndarray) else a.toarray(), dtype=np.float64) - shift
        if scale is not None:
            a /= scale
        z = a @ components.T
        squares = (z * z / v).sum(axis=1)
        if k < d:
            a -= z @ components
            squares += (a * a).sum(axis=1) / noise
        if not np.isfinite(squares).all():
            row = start + int(np.flatnonzero(~np.isfinite(squares))[0])
            raise ValueError(f"row {row} of X holds NaN or inf, or entries too large to be squared")
        result[start : start + rows] = squares
    return -0.5 * (result + d * np.log(2 * np.pi) + log_det)


def is_singular(components, variances, noise):
    """Whether the model leaves some direction without variance."""
    k, d = components.shape
    return not (max(variances.min(), noise) > 0 and (k == d or noise > 0))


def refusal(components):
    """What to say then."""
    k, d = components.shape
    return (
        f"the {k} components of {d} features leave no variance for some directions: the covariance is singular and has "
        "neither an inverse nor a density; fit with a smaller n_components"
    )


def _spread(variances, noise):
    """v."""
    return np.maximum(np.asarray(variances, dtype=np.float64), noise)
