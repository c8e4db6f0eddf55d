"""Test data is imported by name from this folder."""

import os
import sys
from pathlib import Path

from hypothesis import settings

# Read when SciPy is first imported; without it scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
sys.path.insert(0, str(Path(__file__).parent))

# The same cases everywhere; ci/campaign.sh asks for its own profile and a seed.
settings.register_profile("same", max_examples=60, deadline=None, derandomize=True)
settings.register_profile("campaign", max_examples=int(os.environ.get("PROPTEST_CASES", "5000")), deadline=None)
settings.load_profile("same")
