"""scikit-learn's own checks: all pass, none is skipped, none is expected to fail."""

import unittest

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hbpca import PCA


@parametrize_with_checks([PCA(), PCA(n_components=1, scale="std", solver="krylov")])
def test_check(estimator, check):
    try:
        check(estimator)
    except (unittest.SkipTest, pytest.skip.Exception) as reason:
        pytest.fail(f"skipped: {reason}")
