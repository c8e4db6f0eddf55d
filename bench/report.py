"""The table in words and numbers: printed, and saved as JSON, CSV and Markdown, with the scaling plot as SVG."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import plot

#: sin² of the largest principal angle, at most.
ACCURATE = 1e-6
OURS = "hbpca auto"
COLUMNS = ["peer", "seconds", "sine_squared", "passes", "peak_mb", "added_mb", "warnings", "note", "problem"]

Row = dict[str, Any]


class Verdict(NamedTuple):
    """hbpca's default against the fastest peer that found the answer."""

    row: str
    best_peer: str
    best: float | None
    auto: float | None
    #: Above 1: hbpca is faster.
    ratio: float | None
    words: str


def is_accurate(result: dict[str, Any]) -> bool:
    return result.get("sine_squared", 1.0) <= ACCURATE


def verdict(row: Row) -> Verdict:
    others = [r for r in row["results"] if not r["peer"].startswith("hbpca") and is_accurate(r)]
    best = min(others, key=lambda r: r["seconds"], default=None)
    ours = next((r for r in row["results"] if r["peer"] == OURS), {})
    auto = ours.get("seconds")
    name = f"{row['set']}, {row['k']}"
    best_peer, best_seconds = (best["peer"], best["seconds"]) if best else ("none", None)
    if auto is None:
        return Verdict(name, best_peer, best_seconds, None, None, f"LOSS: no answer ({ours.get('problem', 'not run')})")
    if not is_accurate(ours):
        return Verdict(name, best_peer, best_seconds, auto, None, f"LOSS: inaccurate, sin² = {ours['sine_squared']:.0e}")
    if best is None:
        return Verdict(name, best_peer, None, auto, None, "win: no other accurate answer")
    ratio = best_seconds / auto
    return Verdict(name, best_peer, best_seconds, auto, ratio, "win" if ratio > 1 else "LOSS")


def summary(run: dict[str, Any]) -> str:
    verdicts = [verdict(row) for row in run["rows"]]
    body = [
        [v.row, v.best_peer, ms(v.best), ms(v.auto), ratio_text(v.ratio), silently_wrong(row), v.words]
        for v, row in zip(verdicts, run["rows"], strict=True)
    ]
    heads = ["data, k", "fastest accurate peer", "its ms", f"{OURS} ms", "ratio", "wrong without a warning", "verdict"]
    wins = sum(v.words.startswith("win") for v in verdicts)
    return f"{markdown(heads, body)}\n\n{wins} wins, {len(verdicts) - wins} losses; accurate: sin² ≤ {ACCURATE:g}\n"


def silently_wrong(row: Row) -> str:
    wrong = [r["peer"] for r in row["results"] if "seconds" in r and not is_accurate(r) and not r["warnings"]]
    return ", ".join(wrong) or "–"


def print_row(row: Row) -> None:
    print(f"\n{title(row)}\n\n{row_table(row)}\n", flush=True)


def title(row: Row) -> str:
    density = "" if row["nnz"] == row["n"] * row["d"] else f", {row['nnz']} not zero"
    return f"{row['set']}, k = {row['k']} ({row['n']} × {row['d']}{density}; λ₍ₖ₊₁₎/λₖ = {row['gap']:.4f})"


def row_table(row: Row) -> str:
    results = sorted(row["results"], key=lambda r: r.get("seconds", float("inf")))
    body = []
    for r in results:
        if "seconds" not in r:
            body.append([r["peer"], "–", "–", "–", "–", r["problem"]])
            continue
        mark = "" if is_accurate(r) else " (wrong)" if r["sine_squared"] > 0.1 else " (inaccurate)"
        passes = "–" if r["passes"] is None else f"{r['passes']:.4g}"
        remarks = "; ".join([*filter(None, [r["note"], r["problem"]]), *(text[:70] for text in r["warnings"])])
        body.append([r["peer"], ms(r["seconds"]), f"{r['sine_squared']:.0e}{mark}", passes, f"{r['added_mb']:.0f}", remarks])
    return markdown(["peer", "ms", "sin²", "passes", "added MB", "remarks and warnings"], body)


def save(run: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(run, indent=1))
    (folder / "results.md").write_text(page(run))
    with (folder / "results.csv").open("w", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["set", "k", "n", "d", "nnz", "gap", *COLUMNS])
        for row in run["rows"]:
            for r in row["results"]:
                cells = [" | ".join(r[c]) if isinstance(r.get(c), list) else r.get(c) for c in COLUMNS]
                lines.writerow([row["set"], row["k"], row["n"], row["d"], row["nnz"], row["gap"], *cells])
    plot.scaling(run["rows"], is_accurate, folder / "scaling.svg")


def page(run: dict[str, Any]) -> str:
    about = run["about"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items() if version)
    parts = [
        "# Benchmark\n",
        f"{about['date']}, hbpca at {about['commit']}, {about['machine']}, {about['cores']} cores (load {about['load']:.1f} at "
        f"the start), {about['mode']} data, best of {about['repeat']}, at most {about['limit_seconds']:g} s a fit, seed "
        f"{about['seed']}, {about['minutes']:.1f} minutes. {versions}.\n",
        *(f"Missing: {name} ({why}).\n" for name, why in run["missing"].items()),
        summary(run),
        *(f"## {title(row)}\n\nReference: {row['reference']}.\n\n{row_table(row)}\n" for row in run["rows"]),
    ]
    return "\n".join(parts)


def markdown(heads: list[str], body: list[list[str]]) -> str:
    """Aligned, so that it reads well on a terminal too."""
    lines = [heads, *([cell.replace("|", "/").replace("\n", " ") for cell in line] for line in body)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])


def ms(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{1e3 * seconds:.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


def ratio_text(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"
