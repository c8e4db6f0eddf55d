"""One peer on one data set, in a process of its own: `child.py PEER FOLDER K OUT`.

Prints a line when the data are read and the library is warm, and then fits once for each line on its standard input. Each
fit writes the components to OUT (k×d, f64) and prints one JSON object. `rust-peers` speaks the same protocol.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import data
import peers


def warm_up(fit: peers.Fit, sparse: bool) -> None:
    """What a library loads or measures once should not be counted as the fit's."""
    X = np.random.default_rng(0).standard_normal((400, 12), dtype=np.float32)
    if sparse:
        from scipy.sparse import csr_array

        X = csr_array(X)
    # Who fails here (PROPACK allows itself too few steps) may yet succeed on the data.
    with warnings.catch_warnings(), contextlib.suppress(np.linalg.LinAlgError):
        warnings.simplefilter("ignore")
        fit(data.Rows(X, False), 1)


def memory_mb(key: str) -> float:
    """VmRSS (now) or VmHWM (at most); 0 where there is no such file."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(key)), 0.0)


def forget_peak() -> None:
    """Let VmHWM begin anew, so that imports and reading do not count."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def measure(fit: peers.Fit, rows: data.Rows, k: int, out: Path) -> dict[str, object]:
    forget_peak()
    before = memory_mb("VmRSS")
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        start = time.perf_counter()
        found = fit(rows, k)
        seconds = time.perf_counter() - start
    peak = memory_mb("VmHWM")
    np.ascontiguousarray(found.components, dtype="<f8").tofile(out)
    return {
        "seconds": seconds,
        "passes": found.passes,
        "warnings": [f"{warning.category.__name__}: {str(warning.message)[:160]}" for warning in given],
        "peak_mb": peak,
        "added_mb": max(peak - before, 0.0),
        "note": found.note,
    }


def main() -> None:
    name, folder, k, out = sys.argv[1:]
    # Libraries print what they like: only the answers go to the real standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    fit = peers.BY_NAME[name].load()
    rows = data.read(Path(folder))
    warm_up(fit, hasattr(rows.X, "indptr"))
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps(measure(fit, rows, int(k), Path(out))), file=answers, flush=True)


if __name__ == "__main__":
    main()
