#!/usr/bin/env python3
"""Do more threads than the machine runs at once cost anything?

    python3 bench/threads.py HBPCA --data DIR [--rounds 9] [--threads 2,1000]

Fits the data sets of `two_builds.py` with the command line HBPCA and each number of threads in turns, and prints the smallest
time of each and the ratio of the last to the first. Whole processes are timed, because starting threads is part of it.
"""

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

from two_builds import SETS


def seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("hbpca")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", default="2,1000", type=lambda text: [int(n) for n in text.split(",")])
    args = parser.parse_args()
    print("| data, k | " + " | ".join(f"{n} threads, ms" for n in args.threads) + " | last/first |")
    print("|---|" + "---|" * (len(args.threads) + 1))
    with tempfile.TemporaryDirectory() as folder:
        for name, source, extension, flags, counts, _ in SETS:
            file = Path(folder) / f"{name}.{extension}"
            subprocess.run([args.hbpca, "convert", str(args.data / source), str(file), "-q"], check=True)
            k = counts[min(1, len(counts) - 1)]
            fit = [args.hbpca, "fit", str(file), "-q", "-k", str(k), *flags]
            best = dict.fromkeys(args.threads, float("inf"))
            for turn in range(args.rounds):
                # Each goes first as often as the others.
                for n in sorted(args.threads, reverse=turn % 2 == 1):
                    best[n] = min(best[n], seconds([*fit, "--threads", str(n)]))
            times = " | ".join(f"{1e3 * best[n]:.1f}" for n in args.threads)
            print(f"| {name}, {k} | {times} | {best[args.threads[-1]] / best[args.threads[0]]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
