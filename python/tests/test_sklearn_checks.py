"""scikit-learn's own checks: all pass, none is skipped, none is expected to fail."""

import unittest

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hbpca import PCA, IncrementalPCA, TruncatedSVD


# One check scores data of deficient rank, which has no density.
@pytest.mark.filterwarnings("ignore:the .* components of 10 features")
@parametrize_with_checks(
    [PCA(), PCA(n_components=1, scale="std", solver="krylov"), IncrementalPCA(), TruncatedSVD(n_components=1)],
)
def test_check(estimator, check):
    try:
        check(estimator)
    except (unittest.SkipTest, pytest.skip.Exception) as reason:
        pytest.fail(f"skipped: {reason}")
