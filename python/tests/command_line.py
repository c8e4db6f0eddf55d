"""The command line's binary, for tests that compare with it."""

import os
import shutil
from pathlib import Path

import pytest


def find():
    """Its path where it was built, or `None`."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).resolve().parents[2] / "target"))
    for candidate in (os.environ.get("HBPCA_CLI"), folder / "debug" / "hbpca", folder / "release" / "hbpca"):
        if candidate and shutil.which(candidate):
            return str(candidate)
    return None


needed = pytest.mark.skipif(find() is None, reason="the command line is not built: cargo build")
