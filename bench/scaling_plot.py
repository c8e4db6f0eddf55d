#!/usr/bin/env python3
"""Draws what `hbpca plan` foretells of three data sets on 1 to 1,024 ranks.

    python3 bench/scaling_plot.py [--binary target/release/hbpca] [-o docs/figures/ranks.svg]

Solid: the time of the fastest solver. Dotted: the part of it that is messages. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

plt.rcParams["svg.fonttype"] = "none"  # letters stay letters
plt.rcParams["svg.hashsalt"] = "hbpca"  # the same file for the same numbers

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
RANKS = [2**i for i in range(11)]
DATA = {
    "dense, 10⁹ × 10³": ("1e9x1e3", 10),
    "text, 10⁸ × 10⁶, 10¹⁰ entries": ("1e8x1e6x1e10", 50),
    "genotypes, 5·10⁵ × 8·10⁵, as dense rows": ("5e5x8e5", 20),
}


def plan(binary: Path, shape: str, k: int, ranks: int) -> dict:
    """The fastest solver's forecast."""
    command = [str(binary), "plan", "--shape", shape, "-k", str(k), "--ranks", str(ranks), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["solvers"][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--binary", type=Path, default=TARGET / "release" / "hbpca")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "figures" / "ranks.svg")
    options = parser.parse_args()
    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    print(f"{'data':42} {'ranks':>5} {'solver':10} {'rounds':>6} {'seconds':>9} {'messages':>9} {'GiB a rank':>10}")
    for (name, (shape, k)), colour in zip(DATA.items(), matplotlib.colormaps["tab10"].colors, strict=False):
        rows = [plan(options.binary, shape, k, ranks) for ranks in RANKS]
        axis.loglog(RANKS, [row["seconds"] for row in rows], "o-", color=colour, markersize=4, label=f"{name}, k = {k}")
        spread = [(ranks, row["communicating_seconds"]) for ranks, row in zip(RANKS, rows, strict=True) if ranks > 1]
        axis.loglog(*zip(*spread, strict=True), ":", color=colour)
        for ranks, row in zip(RANKS, rows, strict=True):
            if ranks in (1, 16, 128, 1024):
                times = f"{row['seconds']:9.2f} {row['communicating_seconds']:9.3f} {row['memory_per_rank'] / 2**30:10.1f}"
                print(f"{name:42} {ranks:5} {row['solver']:10} {row['rounds']:6.0f} {times}")
    axis.set_xlabel("ranks of four threads; 20 µs a message, 10 Gbit/s")
    axis.set_ylabel("seconds (dotted: messages)")
    axis.set_xticks(RANKS, [str(ranks) for ranks in RANKS])
    axis.minorticks_off()
    axis.grid(True, alpha=0.25)
    axis.legend(frameon=False, fontsize=9)
    figure.savefig(options.output, metadata={"Date": None})


if __name__ == "__main__":
    main()
