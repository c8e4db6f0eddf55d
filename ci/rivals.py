#!/usr/bin/env python3
"""ci/rivals.py OUT [FIGURE [ERROR]]: median passes and seconds to an error, 1e-10 by default, in every race of a reproduction."""

import csv
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path


def looks(path: Path, column: str) -> dict[tuple[str, str, str], list[float]]:
    """A column of all looks of every run."""
    found = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["dataset"], row["solver"], row["seed"]].append(float(row[column]))
    return found


def main() -> None:
    figure, target = (sys.argv[2:] + ["figure1", "1e-10"][len(sys.argv) - 2 :])[:2]
    out = Path(sys.argv[1])
    errors, passes = (looks(out / f"{figure}.csv", column) for column in ("error", "passes"))
    seconds = looks(out / f"{figure}-seconds.csv", "seconds")
    arrived = defaultdict(list)
    for run, of in errors.items():
        at = next((i for i, error in enumerate(of) if error <= float(target)), None)
        arrived[run[:2]].append((math.inf, math.inf) if at is None else (passes[run][at], seconds[run][at]))
    for (dataset, solver), runs in sorted(arrived.items()):
        took = [statistics.median_high(values) for values in zip(*runs, strict=True)]
        words = "did not arrive" if math.isinf(took[0]) else f"{took[0]:5.1f} passes, {took[1]:.2f} s"
        print(f"{dataset:22} {solver:28} {words}")


if __name__ == "__main__":
    main()
