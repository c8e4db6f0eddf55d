#!/usr/bin/env python3
"""Is one build of the command line as fast as another?

    python3 bench/two_builds.py OLD NEW --data DIR

Fits the data sets of docs/benchmarks.md with both binaries in turns and prints the smallest time of each and their ratio, so
that a busy machine slows both. Times are those of the fit itself, without reading.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

# Data set, file, how it is stored, flags, numbers of components, solvers.
SETS = [
    ("ijcnn1", "ijcnn1.tst.bz2", "npz", ["--scale", "std"], [1], ["auto"]),
    ("covtype", "covtype.csv.gz", "npy", ["--scale", "std"], [1, 10], ["auto", "anchored"]),
    ("MNIST", "train-images-idx3-ubyte.gz", "npy", [], [1, 10, 50], ["auto", "anchored"]),
    ("Reuters-21578", "reuters21578.npz", "npz", ["--no-center"], [1, 10, 50], ["auto"]),
    ("news20", "news20.bz2", "npz", ["--no-center"], [1, 10, 50], ["auto"]),
]


def fit(binary: str, file: Path, flags: list[str]) -> dict:
    command = [binary, "fit", str(file), "--json", "-q", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    binaries = {"old": args.old, "new": args.new}
    print(f"{'data':14} {'k':>3} {'solver':11} {'old, ms':>9} {'new, ms':>9} {'new/old':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, source, extension, flags, counts, solvers in SETS:
            file = Path(folder) / f"{name}.{extension}"
            subprocess.run([args.old, "convert", str(args.data / source), str(file), "-q"], check=True)
            for k in counts:
                for solver in solvers if k == 10 else ["auto"]:
                    seconds = {"old": [], "new": []}
                    for turn in range(args.rounds):
                        # Each goes first as often as the other.
                        for build in sorted(binaries, reverse=turn % 2 == 1):
                            found = fit(binaries[build], file, ["-k", str(k), "--solver", solver, *flags])
                            seconds[build].append(found["seconds"])
                    old, new = (min(seconds[build]) * 1e3 for build in ("old", "new"))
                    print(f"{name:14} {k:3} {found['solver']:11} {old:9.1f} {new:9.1f} {new / old:8.2f}", flush=True)


if __name__ == "__main__":
    main()
