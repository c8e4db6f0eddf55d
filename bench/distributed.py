#!/usr/bin/env python3
"""Rows on several ranks and on a cluster: what spreading them costs, and what others take for the same.

    python3 bench/distributed.py [--rows 100000] [--columns 200] [-k 10] [--python PATH] [--repeat 3] [--only PART …]

- `ranks`: `mpiexec -n 2 hbpca --threads 1` against one process with two threads: the same cores, so that the ratio is what
  ranks cost.
- `model`: what `hbpca plan` foretells of 1 to 4 ranks, for the speed of one rank here and the network measured here, against
  what they take.
- `delay`: ranks whose messages take 10 ms: how much of the time is rounds × messages × delay.
- `peers`: hbpca against heat's PCA on MPI, dask-ml's PCA and `svd_compressed` on Dask, and MLlib's PCA on Spark, on the same
  rows and processors, with the largest principal angle to LAPACK's answer; and sparse rows with more columns than MLlib takes.

Needs the release binary, and an environment with hbpca, mpi4py, mpich, heat, dask[distributed], dask-ml and pyspark
(`--python`). What cannot be imported is left out with a word.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from spread import ROOT, exact, generated

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
#: The sine of the largest angle of an accurate answer.
ACCURATE = 1e-3
PARTS = ("ranks", "model", "delay", "peers")


def fit(options: argparse.Namespace, ranks: int, solver: str, threads: int) -> dict:
    """The JSON of one fit of `x.npy`; ranks 0 stands for no launcher."""
    launcher = [str(options.mpiexec), "-n", str(ranks)] if ranks else []
    data = [str(options.folder / "x.npy"), "-k", str(options.k), "--solver", solver]
    command = [*launcher, str(options.binary), "fit", *data, "--json", "-q", "--threads", str(threads)]
    done = subprocess.run(command, env=options.environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def ranks(options: argparse.Namespace) -> None:
    print(f"\n{'solver':12} {'1 process × 2 threads':>22} {'2 ranks × 1 thread':>19} {'ratio':>6}")
    for solver in ("krylov", "covariance", "anchored"):
        seconds = {0: [], 2: []}
        for _ in range(options.repeat):
            for count, threads in ((0, 2), (2, 1)):
                seconds[count].append(fit(options, count, solver, threads)["seconds"])
        alone, ranked = min(seconds[0]), min(seconds[2])
        lost = "  loss: the aim is 1.1" if ranked > 1.1 * alone else ""
        print(f"{solver:12} {alone:20.3f} s {ranked:17.3f} s {ranked / alone:6.2f}{lost}", flush=True)


def plan(options: argparse.Namespace, ranks: int, network: list[str]) -> dict[str, dict]:
    """What `hbpca plan` foretells of every solver."""
    command = [str(options.binary), "plan", "--shape", f"{options.rows}x{options.columns}", "-k", str(options.k)]
    command += ["--ranks", str(ranks), *network, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {row["solver"]: row for row in json.loads(done.stdout)["solvers"]}


def model(options: argparse.Namespace) -> None:
    cores = len(os.sched_getaffinity(0))
    measured = next((line for line in child(options, "spread_mpi.py", "network") if line["engine"] == "network"), None)
    if measured is None:
        print("\nmodel: left out, the network could not be measured")
        return
    latency, bandwidth = measured["seconds"], measured["sine"]
    network = ["--latency", f"{latency * 1e6:.3f}us", "--bandwidth", str(int(bandwidth))]
    print(f"\nmodel: {latency * 1e6:.1f} µs a message, {bandwidth / 1e9:.2f} GB/s, {cores} processors")
    print(f"{'solver':12} {'ranks':>5} {'rounds foretold':>16} {'made':>5} {'seconds foretold':>17} {'taken':>8} {'ratio':>6}")
    for solver in ("krylov", "covariance"):
        taken: dict[int, list[dict]] = {count: [] for count in (1, 2, 3, 4)}
        for _ in range(options.repeat):
            for count, fits in taken.items():
                fits.append(fit(options, count, solver, 1))
        one = min(run["seconds"] for run in taken[1])
        nominal = plan(options, 1, network)[solver]["computing_seconds"]
        for count, fits in taken.items():
            foretold = plan(options, count, network)[solver]
            # The model's machine has a processor for every thread; here ranks beyond the processors take turns.
            share = foretold["computing_seconds"] / nominal * max(1.0, count / cores)
            seconds = one * share + foretold["communicating_seconds"]
            best = min(fits, key=lambda run: run["seconds"])
            made = best["full_passes"] + best.get("statistics_passes", 1)
            numbers = f"{foretold['rounds']:16.0f} {made:5.0f} {seconds:15.3f} s {best['seconds']:6.3f} s"
            print(f"{solver:12} {count:5} {numbers} {best['seconds'] / seconds:6.2f}", flush=True)


def child(options: argparse.Namespace, script: str, *arguments: object) -> list[dict]:
    """What a script of this folder tells, in the environment of the peers."""
    launcher = [str(options.mpiexec), "-n", "2"] if script == "spread_mpi.py" else []
    command = [*launcher, str(options.python), str(ROOT / "bench" / script), str(options.folder), str(options.k)]
    repeat = 0 if "network" in arguments else options.repeat
    command += [str(repeat), *[str(x) for x in arguments if x != "network"]]
    done = subprocess.run(command, env=options.environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        error = done.stderr.strip().splitlines()[-1:] or ["no word"]
        lines.append(json.dumps({"engine": script, "peer": "", "seconds": None, "sine": None, "remark": error[0][:160]}))
    return [json.loads(line) for line in lines]


def delay(options: argparse.Namespace) -> None:
    done = subprocess.run(
        [str(options.python), str(ROOT / "bench" / "spread_delay.py")], env=options.environment, text=True, check=False
    )
    if done.returncode:
        print("delay: left out")


def peers(options: argparse.Namespace) -> None:
    scripts = [
        ("spread_mpi.py", ()),
        ("spread_dask.py", ()),
        ("spread_spark.py", (options.sparse_rows, options.sparse_columns)),
    ]
    print(f"\n{'on':26} {'peer':28} {'seconds':>9} {'sine':>9} {'ratio':>7}  remarks")
    for script, arguments in scripts:
        lines = [line for line in child(options, script, *arguments) if line["engine"] != "network"]
        for x in lines:
            alike = [y for y in lines if y["engine"] == x["engine"] and y["peer"].startswith("hbpca")]
            ours = min((y["seconds"] for y in alike if y["seconds"]), default=None)
            if x["seconds"] is None:
                print(f"{x['engine']:26} {x['peer']:28} {'–':>9} {'–':>9} {'–':>7}  {x['remark']}", flush=True)
                continue
            ratio = x["seconds"] / ours if ours else float("nan")
            numbers = f"{x['seconds']:9.3f} {x['sine']:9.1e} {ratio:7.2f}"
            print(f"{x['engine']:26} {x['peer']:28} {numbers}  {x['remark']}{loss(x, lines, ratio)}", flush=True)


def loss(x: dict, lines: list[dict], ratio: float) -> str:
    """A word where an accurate peer is not beaten as it should be, or not at all."""
    if not x["peer"].startswith("hbpca"):
        return "  loss: the aim is 3" if ratio < 3 and x["sine"] <= ACCURATE else ""
    others = [y for y in lines if y["engine"] == x["engine"] and not y["peer"].startswith("hbpca") and y["seconds"]]
    faster = [y["peer"] for y in others if y["seconds"] < x["seconds"] and y["sine"] <= ACCURATE]
    return f"  loss to {', '.join(faster)}" if faster else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--sparse-rows", type=int, default=100_000)
    parser.add_argument("--sparse-columns", type=int, default=200_000)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--mpiexec", type=Path)
    parser.add_argument("--binary", type=Path, default=TARGET / "release" / "hbpca")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    options.mpiexec = options.mpiexec or options.python.parent / "mpiexec"
    for needed in (options.binary, options.mpiexec, options.python):
        if not needed.exists():
            sys.exit(f"there is no {needed}")
    X = generated(options.rows, options.columns)
    load = os.getloadavg()[0]
    print(f"{options.rows} × {options.columns}, k = {options.k}, the fastest of {options.repeat}; {load:.1f} processes running")
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        np.save(options.folder / "x.npy", X)
        np.save(options.folder / "leading.npy", exact(X, options.k))
        path = f"{options.mpiexec.parent}:{os.environ['PATH']}"
        options.environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "PYSPARK_PYTHON": str(options.python)}
        for part in options.only:
            globals()[part](options)


if __name__ == "__main__":
    main()
