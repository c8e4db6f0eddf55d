"""All rows of one run, saved as they come."""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import data
import reference
import report
from environment import BENCH, HOME, MISSING, ROOT
from peers import PEERS, Peer
from race import Runner, race

HISTORY = BENCH / "history.csv"
HISTORY_COLUMNS = [
    "date",
    "version",
    "commit",
    "mode",
    "row",
    "fastest accurate peer",
    "its ms",
    "hbpca auto ms",
    "ratio",
    "machine",
]


def make(options: argparse.Namespace) -> None:
    missing = json.loads(MISSING.read_text())
    peers = [peer for peer in PEERS if peer.package not in missing]
    repeat = 1 if options.quick else options.repeat
    run = {"about": about(options, repeat), "missing": missing, "rows": []}
    began = time.monotonic()
    for data_set in data_sets(options):
        try:
            rows = rows_of(data_set, peers, options, repeat)
        except ArithmeticError as error:
            missing[data_set.name] = str(error)
            continue
        for row in rows:
            run["rows"].append(row)
            report.print_row(row)
            run["about"]["minutes"] = (time.monotonic() - began) / 60
            report.save(run, options.output)
    print(report.summary(run))
    print(f"saved to {options.output}", file=sys.stderr)
    if not options.quick:
        append_history(run)


def data_sets(options: argparse.Namespace) -> list[data.DataSet]:
    real = data.real_sets(options.data, options.quick) if options.data else []
    found = data.chosen([*real, *data.generated_sets(options.quick)], options.rows.split(","))
    if not found:
        hint = "" if options.data else "; without --data there are only generated ones"
        sys.exit(f"--rows {options.rows}: no row of that name{hint}")
    return found


def rows_of(data_set: data.DataSet, peers: list[Peer], options: argparse.Namespace, repeat: int) -> list[dict[str, Any]]:
    folder = HOME / "data"
    rows = data.write(data_set, folder, prepared=not options.raw)
    n, d = rows.X.shape
    sparse = hasattr(rows.X, "indptr")
    nnz = int(rows.X.nnz) if sparse else n * d
    exact = reference.exact(rows, data_set.ks)
    del rows
    able = [peer for peer in peers if ("sparse" if sparse else "dense") in peer.takes]
    too_slow: dict[str, str] = {}
    finished = []
    for k in data_set.ks:
        taking_part = [peer for peer in able if peer.name not in too_slow]
        runners = race(taking_part, folder, k, repeat=repeat, limit=options.limit, scratch=HOME / "scratch")
        results = [result_of(runner, exact, k) for runner in runners]
        results += [{"peer": peer, "problem": f"not run: {why}"} for peer, why in too_slow.items()]
        # More components take longer still.
        too_slow |= {r.peer.name: f"{r.problem} at k = {k}" for r in runners if r.problem.startswith("over ")}
        finished.append(
            {
                "set": data_set.name,
                "group": data_set.group,
                "k": k,
                "n": n,
                "d": d,
                "nnz": nnz,
                "gap": exact.gap(k),
                "reference": exact.method,
                "results": results,
            }
        )
    shutil.rmtree(folder)
    return finished


def result_of(runner: Runner, exact: reference.Reference, k: int) -> dict[str, Any]:
    if not runner.results:
        return {"peer": runner.peer.name, "problem": runner.problem}
    last = runner.results[-1]
    return {
        "peer": runner.peer.name,
        "seconds": runner.fastest(),
        "rounds": [result["seconds"] for result in runner.results],
        "sine_squared": reference.sine_squared(exact, runner.components(k)),
        "passes": last["passes"],
        "peak_mb": max(result["peak_mb"] for result in runner.results),
        "added_mb": max(result["added_mb"] for result in runner.results),
        "warnings": sorted({text for result in runner.results for text in result["warnings"]}),
        "note": last["note"],
        "problem": runner.problem,
    }


def about(options: argparse.Namespace, repeat: int) -> dict[str, Any]:
    packages = sorted({peer.package for peer in PEERS} - {"rust-peers"})
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "mode": "raw" if options.raw else "prepared",
        "quick": options.quick,
        "repeat": repeat,
        "limit_seconds": options.limit,
        "seed": data.SEED,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def append_history(run: dict[str, Any]) -> None:
    """One line for each row: how the ratios moved from version to version."""
    is_new = not HISTORY.exists()
    with HISTORY.open("a", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        if is_new:
            lines.writerow(HISTORY_COLUMNS)
        about = run["about"]
        which = [about["date"], about["versions"]["hbpca"], about["commit"], about["mode"]]
        for v in map(report.verdict, run["rows"]):
            times = [report.ms(v.best), report.ms(v.auto), report.ratio_text(v.ratio)]
            lines.writerow([*which, v.row, v.best_peer, *times, about["machine"]])
