"""`scanpy.pp.pca` with a proof, also for data that stays on disk.

    import hbpca.scanpy
    hbpca.scanpy.pca(adata, n_comps=50)

The arguments and the results are those of `scanpy.pp.pca`. Sparse data is never made dense, and a file opened with
`backed="r"` is read in chunks. scanpy itself is not needed, only anndata.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from hbpca._chunks import Sliced, prepared, source_of
from hbpca._input import matrix_of
from hbpca._pca import PCA
from hbpca._truncated_svd import TruncatedSVD

#: scanpy's default number of components.
_N_COMPS = 50
#: Stands for an argument that was not given, where `None` means something.
_NOT_GIVEN = object()


class _Counts(NamedTuple):
    """What is done with the rows of X before their covariance is taken; zeros stay zeros."""

    #: Genes that are kept, or None for all.
    mask: np.ndarray | None
    #: What the counts of a cell, over all genes, are brought to.
    target: float | None
    log1p: bool

    def of(self, X):
        """The rows of a matrix, dense or CSR; X stays as it is."""
        total = None if self.target is None else np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
        X = X if self.mask is None else X[:, self.mask]
        if total is None and not self.log1p:
            return X
        sparse = hasattr(X, "tocsr")
        dtype = np.float64 if X.dtype == np.float64 else np.float32
        X = X.astype(dtype)  # a copy, also of what has the type
        if total is not None:
            total[total == 0] = self.target  # a cell without counts has nothing to be brought to
            factor = self.target / total
            if sparse:
                X.data *= np.repeat(factor, np.diff(X.indptr)).astype(dtype)
            else:
                X *= factor[:, None].astype(dtype)
        if self.log1p:
            values = X.data if sparse else X
            np.log1p(values, out=values)
        return X


def pca(
    data: Any,
    n_comps: int | None = None,
    *,
    layer: str | None = None,
    zero_center: bool = True,
    svd_solver: str | None = None,
    chunked: bool = False,
    chunk_size: int | None = None,
    random_state: Any = 0,
    return_info: bool = False,
    mask_var: Any = _NOT_GIVEN,
    use_highly_variable: bool | None = None,
    dtype: Any = "float32",
    key_added: str | None = None,
    copy: bool = False,
    normalize: float | None = None,
    log1p: bool = False,
    scale: bool = False,
    tol: float | None = None,
    memory_limit: int | str | None = None,
) -> Any:
    """Principal components of cells, with the arguments and results of `scanpy.pp.pca`.

    Parameters
    ----------
    data : AnnData, in memory or backed, or an array or a sparse matrix of cells and genes
    n_comps : 50, or one less than the smaller of cells and genes where that is no more than 50
    layer : the layer to use instead of `X`
    zero_center : `False` is a truncated SVD, for data in memory
    svd_solver : as of `hbpca.PCA`; `None` chooses by size
    chunked, chunk_size : accepted for compatibility: the result is the same, and backed data comes in chunks anyway
    random_state : seed of the start vectors; the result does not depend on it up to the tolerance
    return_info : for arrays, return also components, ratios and variances
    mask_var : genes to use: a column of `.var` or one boolean a gene; "highly_variable" where there is such a column;
        `None` for all genes
    use_highly_variable : scanpy's older word for that
    dtype : of `.obsm['X_pca']`
    key_added : one key for all three results
    copy : return a changed copy
    normalize : bring the counts of each cell to this total first, as `scanpy.pp.normalize_total(target_sum=…)` does
    log1p : then take log(1 + x), as `scanpy.pp.log1p` does
    scale : then divide each gene by its standard deviation, as `scanpy.pp.scale` does (without `max_value`); implicit, as
        centring is. `data` is not changed by any of these three
    tol : as of `hbpca.PCA`
    memory_limit : bytes, or text such as "4G", that backed data may take; what does not fit is read in every pass

    Returns
    -------
    None, a changed copy, or for arrays the scores. Of AnnData it sets `.obsm['X_pca']`, `.varm['PCs']` (zero outside the mask)
    and `.uns['pca']` with `params`, `variance` and `variance_ratio`; and, beside scanpy's own, `.uns['pca']['hbpca']` with
    `outcome`, `solver`, `passes` and `residuals`.
    """
    if not _is_anndata(data):
        counts = _Counts(None, normalize, log1p)
        shape = getattr(data, "shape", None) or matrix_of(data).shape
        found = _find(data, counts, _wanted(n_comps, shape), zero_center, svd_solver, random_state, scale, tol, memory_limit)
        scores = found.scores.astype(dtype, copy=False)
        info = (scores, found.components, found.ratio, found.variance)
        return info if return_info else scores

    adata = data.copy() if copy else data
    param, mask = _mask(adata, mask_var, use_highly_variable)
    X = adata.X if layer is None else adata.layers[layer]
    d = adata.n_vars if mask is None else int(mask.sum())
    n_comps = _wanted(n_comps, (adata.n_obs, d))
    counts = _Counts(mask, normalize, log1p)
    found = _find(X, counts, n_comps, zero_center, svd_solver, random_state, scale, tol, memory_limit)
    obsm, varm, uns = ("X_pca", "PCs", "pca") if key_added is None else (key_added,) * 3
    adata.obsm[obsm] = found.scores.astype(dtype, copy=False)
    if mask is None:
        adata.varm[varm] = found.components.T
    else:
        loadings = np.zeros((adata.n_vars, n_comps))
        loadings[mask] = found.components.T
        adata.varm[varm] = loadings
    params = {"zero_center": zero_center, "use_highly_variable": _is_hvg(param), "mask_var": param}
    if layer is not None:
        params["layer"] = layer
    for name, value in (("normalize", normalize), ("log1p", log1p), ("scale", scale)):
        if value:
            params[name] = value
    adata.uns[uns] = {"params": params, "variance": found.variance, "variance_ratio": found.ratio, "hbpca": found.about}
    return adata if copy else None


class _Found(NamedTuple):
    scores: np.ndarray
    components: np.ndarray
    variance: np.ndarray
    ratio: np.ndarray
    about: dict[str, Any]


def _find(X, counts, n_comps, zero_center, svd_solver, random_state, scale, tol, memory_limit) -> _Found:
    rows = _rows(X, counts, memory_limit)
    solver = "auto" if svd_solver is None else svd_solver
    if zero_center:
        model = PCA(
            n_comps,
            scale="std" if scale else None,
            svd_solver=solver,
            tol=tol,
            random_state=random_state,
            memory_limit=memory_limit,
        )
        scores = model.fit_transform(rows)
    elif isinstance(rows, Sliced):
        raise NotImplementedError("zero_center=False needs the data in memory: use adata.to_memory(), or centre")
    elif scale:
        raise ValueError("scale=True centres, as scanpy.pp.scale does: leave out zero_center=False")
    else:
        algorithm = "arpack" if solver == "arpack" else "randomized"
        model = TruncatedSVD(n_comps, algorithm=algorithm, random_state=random_state, tol=tol or 0.0)
        scores = model.fit_transform(rows)
    variance = model.explained_variance_
    if scale:
        # scanpy divides by the deviation of denominator n − 1, which is larger than that of n by √(n/(n − 1)).
        n = len(scores)
        scores = scores * scores.dtype.type(np.sqrt((n - 1) / n))
        variance = variance * variance.dtype.type((n - 1) / n)
    about = {
        "outcome": model.outcome_,
        "solver": model.solver_,
        "passes": float(model.n_passes_),
        "residuals": np.asarray(model.certificate_.residuals),
    }
    return _Found(scores, model.components_, variance, model.explained_variance_ratio_, about)


def _rows(X, counts: _Counts, memory_limit):
    """X with what is done to it: a matrix, or a source that does it chunk by chunk."""
    if type(X).__module__.split(".")[0] == "dask":
        raise NotImplementedError("X is a dask array: use adata.to_memory(), or open the file with backed='r'")
    source = source_of(X, memory_limit)
    if source is None:
        return counts.of(matrix_of(X))
    if not isinstance(source, Sliced):
        raise TypeError(f"X is a {type(X).__name__}, whose rows cannot be sliced: give an AnnData, an array or a sparse matrix")
    d = source.d if counts.mask is None else int(counts.mask.sum())
    # Genes differ in how often they occur: about so many entries are left.
    nnz = source.nnz * d // max(1, source.d)
    whole, single = source.whole, source.single
    if counts.target is not None or counts.log1p:
        single = np.dtype(X.dtype) != np.float64
    return source._replace(
        whole=lambda start, end: counts.of(whole(start, end)),
        read=lambda start, end: prepared(counts.of(whole(start, end))),
        d=d,
        nnz=nnz,
        single=single,
    )


def _wanted(n_comps, shape) -> int:
    if n_comps is not None:
        return int(n_comps)
    smallest = min(shape)
    return smallest - 1 if smallest <= _N_COMPS else _N_COMPS


def _mask(adata, mask_var, use_highly_variable):
    """The mask as it was given, for `params`, and as one boolean a gene."""
    if use_highly_variable is not None:
        hint = "use mask_var='highly_variable' for True and mask_var=None for False"
        if mask_var is not _NOT_GIVEN:
            raise ValueError(f"use_highly_variable and mask_var are the same: {hint}")
        warnings.warn(f"use_highly_variable is scanpy's older word: {hint}", FutureWarning, stacklevel=3)
        mask_var = "highly_variable" if use_highly_variable else None
    elif mask_var is _NOT_GIVEN:
        mask_var = "highly_variable" if "highly_variable" in adata.var.columns else None
    if mask_var is None:
        return None, None
    if isinstance(mask_var, str):
        if mask_var not in adata.var.columns:
            raise ValueError(f"mask_var = {mask_var!r}: .var has no such column; it has {list(adata.var.columns)}")
        mask = adata.var[mask_var].to_numpy()
    else:
        mask = np.asarray(mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise ValueError(f"mask_var must be one boolean for each of the {adata.n_vars} genes, not {mask.shape} of {mask.dtype}")
    if not mask.any():
        raise ValueError("mask_var leaves no gene")
    return mask_var, mask


def _is_hvg(param) -> bool:
    return isinstance(param, str) and param == "highly_variable"


def _is_anndata(data) -> bool:
    return type(data).__module__.split(".")[0] == "anndata" and hasattr(data, "obsm")
