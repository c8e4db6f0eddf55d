"""Principal components with a proof.

`PCA` is a drop-in for scikit-learn's estimator of that name. `solve` runs one of the paper's solvers by name, `read` reads
the formats of the command line, `load` a model file, and `theory` gives the rates of the paper.
"""

from hbpca import theory
from hbpca._certificate import Certificate
from hbpca._compat import ConvergenceWarning
from hbpca._files import Data, load, read
from hbpca._hbpca import VERSION as __version__
from hbpca._pca import PCA
from hbpca._solve import Solution, solve

__all__ = [
    "PCA",
    "Certificate",
    "ConvergenceWarning",
    "Data",
    "Solution",
    "__version__",
    "load",
    "read",
    "solve",
    "theory",
]
