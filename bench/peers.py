"""Who takes part, and how each is called.

Peers get hbpca's tolerance, 1e-6 relative to the largest eigenvalue of AᵀA, where they have one that means this; everything
else is left at its default. SciPy squares its `tol` before use, so 1e-3 is 1e-6 there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from data import Rows

DENSE, SPARSE = frozenset({"dense"}), frozenset({"sparse"})
BOTH = DENSE | SPARSE


class Found(NamedTuple):
    #: k×d.
    components: Any
    #: How often all data were read, where the peer says so or it is plain.
    passes: float | None = None
    note: str = ""


Fit = Callable[[Rows, int], Found]


@dataclass(frozen=True)
class Peer:
    name: str
    #: The distribution it comes from, as `environment` names it.
    package: str
    takes: frozenset[str]
    #: Imports the library, in the child. None for the Rust peers, which are a program of their own.
    load: Callable[[], Fit] | None = None


def prepare(rows: Rows) -> Any:
    """What a user of a library without preparation of its own does first."""
    if not rows.raw:
        return rows.X
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(rows.X)


def sklearn_pca(svd_solver: str) -> Fit:
    from sklearn.decomposition import PCA

    tol = {"tol": 1e-3} if svd_solver == "arpack" else {}

    def fit(rows: Rows, k: int) -> Found:
        pca = PCA(k, svd_solver=svd_solver, random_state=0, **tol).fit(prepare(rows))
        return Found(pca.components_, passes=2 if svd_solver == "covariance_eigh" else None)

    return fit


def truncated_svd(algorithm: str) -> Fit:
    from sklearn.decomposition import TruncatedSVD

    tol = {"tol": 1e-3} if algorithm == "arpack" else {}
    return lambda rows, k: Found(TruncatedSVD(k, algorithm=algorithm, random_state=0, **tol).fit(rows.X).components_)


def scipy_svds(solver: str) -> Fit:
    from scipy.sparse.linalg import svds

    # The tolerances of lobpcg and propack mean something else.
    tol = {"tol": 1e-3} if solver == "arpack" else {}

    def fit(rows: Rows, k: int) -> Found:
        return Found(svds(prepare(rows), k=k, solver=solver, return_singular_vectors="vh", rng=0, **tol)[2])

    return fit


def primme_svds() -> Fit:
    import primme

    def fit(rows: Rows, k: int) -> Found:
        _, _, right, stats = primme.svds(prepare(rows), k, tol=1e-6, return_stats=True)
        # Its blocks are one vector wide unless asked otherwise: each product reads all data.
        return Found(right, passes=stats["numMatvecs"])

    return fit


def intelex_pca() -> Fit:
    from sklearnex.decomposition import PCA

    def fit(rows: Rows, k: int) -> Found:
        return Found(PCA(k, svd_solver="covariance_eigh").fit(prepare(rows)).components_)

    return fit


def fbpca_pca() -> Fit:
    import fbpca

    return lambda rows, k: Found(fbpca.pca(prepare(rows), k, raw=True)[2])


def randomized_svd() -> Fit:
    from randomized_svd import rsvd

    return lambda rows, k: Found(rsvd(prepare(rows), k)[2])


def hbpca_pca(solver: str) -> Fit:
    from hbpca import PCA

    def fit(rows: Rows, k: int) -> Found:
        sparse = hasattr(rows.X, "indptr")
        pca = PCA(k, solver=solver, center=not sparse, scale="std" if rows.raw else None, random_state=0).fit(rows.X)
        return Found(pca.components_, passes=pca.n_passes_, note=f"{pca.solver_}, {pca.outcome_}")

    return fit


PEERS = [
    *(Peer(f"hbpca {s}", "hbpca", BOTH, lambda s=s: hbpca_pca(s)) for s in ("auto", "anchored", "krylov")),
    Peer("hbpca covariance", "hbpca", DENSE, lambda: hbpca_pca("covariance")),
    *(
        Peer(f"scikit-learn PCA {s}", "scikit-learn", DENSE, lambda s=s: sklearn_pca(s))
        for s in ("auto", "covariance_eigh", "arpack", "randomized")
    ),
    *(
        Peer(f"scikit-learn TruncatedSVD {a}", "scikit-learn", SPARSE, lambda a=a: truncated_svd(a))
        for a in ("arpack", "randomized")
    ),
    *(Peer(f"SciPy svds {s}", "scipy", BOTH, lambda s=s: scipy_svds(s)) for s in ("arpack", "propack", "lobpcg")),
    Peer("PRIMME svds", "primme", BOTH, primme_svds),
    Peer("scikit-learn-intelex PCA", "scikit-learn-intelex", DENSE, intelex_pca),
    Peer("fbpca", "fbpca", BOTH, fbpca_pca),
    Peer("randomized-svd", "randomized-svd", BOTH, randomized_svd),
    Peer("faer-svd", "rust-peers", BOTH),
    Peer("faer-eigen", "rust-peers", BOTH),
    Peer("svdlib-irlba", "rust-peers", SPARSE),
    Peer("svdlib-randomized", "rust-peers", SPARSE),
]
BY_NAME = {peer.name: peer for peer in PEERS}
