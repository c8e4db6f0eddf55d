"""The command `hbpca`: the program of this name, which the compiled half of the package contains."""

from __future__ import annotations

import sys

from hbpca._hbpca import command


def main() -> int:
    """Do what was typed; the exit code."""
    return command(sys.argv[1:])
