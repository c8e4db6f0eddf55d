"""The Gaussian model behind probabilistic PCA (Tipping & Bishop 1999), in the coordinates of the prepared data.

Its covariance is C = U diag(v) Uᵀ + σ²(I − UUᵀ), with v the explained variances (at least σ²) and σ² the noise variance. All
quantities follow from the k components: with z = Uᵀa,

    aᵀC⁻¹a = Σ zᵢ²/vᵢ + ‖a − Uz‖²/σ²,      ln det C = Σ ln vᵢ + (d − k) ln σ².
"""

from __future__ import annotations

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
    v = _spread(components, variances, noise)
    beyond = 1 / noise if noise > 0 else 0.0
    result = (components.T * (1 / v - beyond)) @ components
    result.flat[:: len(result) + 1] += beyond
    return result


def log_likelihoods(X, components, variances, noise, shift, scale):
    """ln N(a | 0, C) for every row x of X, with a = D⁻¹(x − μ)."""
    k, d = components.shape
    v = _spread(components, variances, noise)
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
        result[start : start + rows] = squares
    return -0.5 * (result + d * np.log(2 * np.pi) + log_det)


def _spread(components, variances, noise):
    """v, where the model has a density."""
    k, d = components.shape
    v = np.maximum(np.asarray(variances, dtype=np.float64), noise)
    if v.min() > 0 and (k == d or noise > 0):
        return v
    raise ValueError(
        f"the {k} components of {d} features leave no variance for the other directions: the covariance is singular and has no "
        "likelihood and no inverse; fit with a smaller n_components"
    )
