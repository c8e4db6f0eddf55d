#!/usr/bin/env python3
"""Race hbpca against everything else one could install, and print and save one table from one run.

    python3 bench/run.py --data DIR [--rows PATTERNS] [--repeat N] [--quick] [--raw] [-o DIR]

See docs/benchmarks.md for what is measured and how.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import environment


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of ijcnn1, covtype, MNIST, Reuters-21578 and news20")
    parser.add_argument(
        "--rows",
        default="*",
        help="rows to run, separated by commas: real, generated, large, a data set, or SET/K; * and ? stand for anything",
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds, of which the fastest counts [3]")
    parser.add_argument("--limit", type=float, default=20, help="seconds for one fit [20]")
    parser.add_argument("--quick", action="store_true", help="small data, one round: does everything run?")
    state = parser.add_mutually_exclusive_group()
    state.add_argument("--prepared", action="store_true", help="everyone gets standardised data [default]")
    state.add_argument("--raw", action="store_true", help="standardising is part of the measured time")
    parser.add_argument("-o", "--output", type=Path, default=environment.HOME / "results", help="folder for the results")
    parser.add_argument("--reinstall", action="store_true", help="try again to install what could not be had last time")
    parser.add_argument("--no-install", action="store_true", help="use the environment of the last run as it is")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if Path(sys.prefix).resolve() != environment.PYTHON.parent.parent.resolve():
        if not options.no_install:
            environment.HOME.mkdir(parents=True, exist_ok=True)
            environment.make(again=options.reinstall)
        os.execv(environment.PYTHON, [str(environment.PYTHON), __file__, *sys.argv[1:]])
    import table

    table.make(options)


if __name__ == "__main__":
    main()
