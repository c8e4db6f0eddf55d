"""One line of progress, redrawn in place."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from hbpca._hbpca import DEFAULT_TOL


class ProgressLine:
    """A callback that draws on a terminal or in a notebook; elsewhere it writes a line at most once a second."""

    def __init__(self, tol: float | None, out: TextIO | None = None):
        self.tol = DEFAULT_TOL if tol is None else tol
        self.out = sys.stderr if out is None else out
        self.in_place = self.out.isatty() or type(self.out).__module__.startswith("ipykernel")
        self.drawn = 0
        self.last = float("-inf")

    def __call__(self, record: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self.last < (0.05 if self.in_place else 1.0):
            return
        self.last = now
        self._draw(_text(record, self.tol), end="" if self.in_place else "\n")

    def finish(self, record: dict[str, Any], outcome: str) -> None:
        """The last line stays."""
        self._draw(f"{_text(record, self.tol)}: {outcome}", end="\n")

    def _draw(self, text: str, end: str) -> None:
        start = "\r" if self.in_place else ""
        self.out.write(start + text.ljust(self.drawn) + end)
        self.out.flush()
        self.drawn = len(text)


def _text(record: dict[str, Any], tol: float) -> str:
    residual = record["residual"] / record["theta"] if record["theta"] > 0 else record["residual"]
    return (
        f"hbpca: {record['passes']:.1f} passes, {record['seconds']:.1f} s, θ = {record['theta']:.6g}, "
        f"residual {residual:.1e} (tol {tol:.0e})"
    )
