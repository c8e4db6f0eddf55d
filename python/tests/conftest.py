"""Test data is imported by name from this folder."""

import os
import sys
from pathlib import Path

# Read when SciPy is first imported; without it scikit-learn skips its check of array API input.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
sys.path.insert(0, str(Path(__file__).parent))
