"""scikit-learn where it is installed, stand-ins where it is not."""

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils.validation import check_is_fitted, validate_data

    HAVE_SKLEARN = True
except ImportError:
    from hbpca._standins import (  # type: ignore[assignment]
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        ConvergenceWarning,
        TransformerMixin,
        check_is_fitted,
        validate_data,
    )

    HAVE_SKLEARN = False

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9, or none
    from hbpca._standins import CallbackSupportMixin, with_callbacks  # type: ignore[assignment]


def sparse_tags(tags):
    """Tags of an estimator that takes sparse data and keeps the precision of its input."""
    tags.input_tags.sparse = True
    tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags


__all__ = [
    "HAVE_SKLEARN",
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "ConvergenceWarning",
    "TransformerMixin",
    "check_is_fitted",
    "sparse_tags",
    "validate_data",
    "with_callbacks",
]
