"""Time against n and against d, one line a peer, on logarithmic axes where a power law is a straight line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt

plt.rcParams["svg.fonttype"] = "none"  # letters stay letters

PANELS = [("easy", "n"), ("hard", "n"), ("easy", "d"), ("hard", "d")]


def scaling(rows: list[dict[str, Any]], is_accurate: Callable[[dict[str, Any]], bool], path: Path) -> None:
    """Only accurate answers are drawn: what is fast and wrong is in the table. The legends give the fitted exponents."""
    figure, axes = plt.subplots(2, 2, figsize=(15, 9), layout="constrained")
    peers = list(dict.fromkeys(result["peer"] for row in rows for result in row["results"]))
    colours = dict(zip(peers, matplotlib.colormaps["tab20"].colors, strict=False))
    for axis, (spectrum, grows) in zip(axes.flat, PANELS, strict=True):
        lines: dict[str, list[tuple[int, float]]] = {}
        for row in rows:
            if row["set"].startswith(f"{spectrum}-{grows}-"):
                for result in filter(is_accurate, row["results"]):
                    lines.setdefault(result["peer"], []).append((row[grows], result["seconds"]))
        # The legend has the order of the lines' right ends.
        for peer, points in sorted(lines.items(), key=lambda line: -max(line[1])[1]):
            sizes, seconds = zip(*sorted(points), strict=True)
            style, width = ("o-", 2.2) if peer.startswith("hbpca") else ("s--", 1)
            label = peer + slope(sizes, seconds)
            axis.loglog(sizes, seconds, style, color=colours.get(peer), linewidth=width, markersize=4, label=label)
        axis.set_title(f"{spectrum} spectrum, {grows} grows, k = 10")
        axis.set_xlabel(grows)
        axis.set_ylabel("seconds")
        axis.grid(True, which="both", alpha=0.25)
        if lines:
            axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(path)
    plt.close(figure)


def slope(sizes: tuple[int, ...], seconds: tuple[float, ...]) -> str:
    if len(sizes) < 2:
        return ""
    return f"  ∝ size^{np.polyfit(np.log(sizes), np.log(seconds), 1)[0]:.2f}"
