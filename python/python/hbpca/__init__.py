"""Principal components with a proof.

`PCA`, `IncrementalPCA` and `TruncatedSVD` are drop-ins for scikit-learn's estimators of these names. `solve` runs one of the
paper's solvers by name, `read` reads the formats of the command line, `load` a model file, and `theory` gives the rates of the
paper.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hbpca import theory
from hbpca._certificate import Certificate
from hbpca._files import Data, load, read
from hbpca._hbpca import VERSION as __version__
from hbpca._solve import Solution, solve

if TYPE_CHECKING:
    from hbpca._compat import ConvergenceWarning
    from hbpca._incremental_pca import IncrementalPCA
    from hbpca._pca import PCA
    from hbpca._truncated_svd import TruncatedSVD

#: What has a base class of scikit-learn, whose import takes long: each is imported when it is first asked for.
_LATER = {
    "PCA": "hbpca._pca",
    "ConvergenceWarning": "hbpca._compat",
    "IncrementalPCA": "hbpca._incremental_pca",
    "TruncatedSVD": "hbpca._truncated_svd",
}

__all__ = [
    "PCA",
    "Certificate",
    "ConvergenceWarning",
    "Data",
    "IncrementalPCA",
    "Solution",
    "TruncatedSVD",
    "__version__",
    "load",
    "read",
    "solve",
    "theory",
]


def __getattr__(name: str):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
