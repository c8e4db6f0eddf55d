#!/usr/bin/env python3
"""Check the style, build the wheel and test it in environments of its own, which are kept for the next time.

    python/run_tests.py [pytest arguments]
    python/run_tests.py --prepare            only makes the environments

Four environments under `target/python/`: the newest scikit-learn with everything optional, in which scikit-learn's own test
modules also run with its estimators replaced by those of the package; the oldest one supported with the checks of scikit-learn
and the tests of equality; scanpy with the tests against it; and NumPy alone. A fifth is made anew each time, to see what
`pip install` brings. On Linux the wheel is linked for glibc 2.17 where zig, which has its symbols, can be installed.
Ends with pytest's closing lines, and fails if any part does. Where no package index can be reached it says so and ends with
77, which `./test` counts as skipped.
"""

from __future__ import annotations

import os
import platform
import stat
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target")).resolve()
HOME = TARGET / "python"
WHEELS = HOME / "wheels"

ENVIRONMENTS = {
    "newest": [
        "scikit-learn",
        "scipy",
        "pandas",
        "statsmodels",
        "polars",
        "pyarrow",
        "h5py",
        "zarr",
        "matplotlib",
        "dask[array,dataframe,distributed]",
        "hypothesis",
        "pytest",
        "ruff>=0.17,<0.18",
        "maturin>=1.9,<2",
    ],
    "oldest": ["scikit-learn==1.6.0", "scipy", "pandas", "hypothesis", "pytest"],
    "cells": ["scanpy", "pytest", "hypothesis"],
    "bare": ["numpy"],
}

# A C compiler and linker with the symbols of every version of glibc.
ZIG = "ziglang>=0.13,<0.16"

# What pip writes where it finds no index; an index that lacks a package lists the versions of it that it has.
NO_ANSWER = ("NewConnectionError", "ConnectTimeout", "ProxyError", "from versions: none")


class NoIndex(Exception):
    """No package index answers."""


def program(folder: Path, name: str) -> Path:
    """A program of an environment."""
    return folder / (f"Scripts/{name}.exe" if os.name == "nt" else f"bin/{name}")


def python_of(name: str) -> Path:
    """The environment's interpreter; made, and filled, where it is missing or its list has changed."""
    folder = HOME / name
    stamp, wanted = folder / "installed.txt", "\n".join(ENVIRONMENTS[name])
    python = program(folder, "python")
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment {name}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *ENVIRONMENTS[name]]
        done = subprocess.run(pip, check=False, text=True, stderr=subprocess.PIPE)
        if done.returncode and any(sign in done.stderr for sign in NO_ANSWER):
            raise NoIndex(done.stderr.strip().splitlines()[-1])
        if done.returncode:
            sys.exit(f"{done.stderr}pip could not fill the environment {name}")
        stamp.write_text(wanted)
    return python


def run(*command: object, cwd: Path = HERE, check: bool = True, **options: object) -> int:
    done = subprocess.run([str(part) for part in command], cwd=cwd, check=False, text=True, **options)
    code = done.returncode
    if check and code:
        print(done.stderr or "", file=sys.stderr)
        sys.exit(f"{' '.join(str(part) for part in command[:6])} … ended with {code}")
    return code


def linker_for_old_systems(python: Path) -> Path | None:
    """A linker against glibc 2.17; nothing where zig cannot be installed, or elsewhere than on Linux."""
    if sys.platform != "linux":
        return None
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", ZIG]
    if run(python, "-c", "import ziglang", check=False, stderr=subprocess.DEVNULL) and run(
        *pip, check=False, stderr=subprocess.DEVNULL
    ):
        print("zig cannot be installed: the wheel is for systems with the C library of this one, or newer", flush=True)
        return None
    find = "import ziglang; print(ziglang.__path__[0])"
    place = subprocess.run([python, "-c", find], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    linker, maturin = HOME / "link-for-old-systems", python.with_name("maturin")
    target = f"{platform.machine()}-linux-gnu.2.17"
    linker.write_text(
        f'#!/bin/sh\nCARGO_ZIGBUILD_ZIG_PATH="{place}/zig" exec "{maturin}" zig cc -- -target {target} "$@"\n',
        encoding="utf-8",
    )
    linker.chmod(linker.stat().st_mode | stat.S_IXUSR)
    return linker


def build(python: Path) -> Path:
    """The wheel, of the profile that the Rust tests have built already: its checks for overflow stay on.

    Only the last step, linking, is for old systems: all else is what the Rust tests have built.
    """
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PYO3_PYTHON": str(python)}
    maturin = [python, "-m", "maturin", "build", "--profile", "dev", "--interpreter", python, "--out", WHEELS]
    if linker := linker_for_old_systems(python):
        maturin += ["--compatibility", "manylinux2014", "--", "-C", f"linker={linker}"]
    run(*maturin, env=environment, stderr=subprocess.PIPE)
    wheel = next(WHEELS.glob("*.whl"))
    if "-abi3-" not in wheel.name:
        sys.exit(f"{wheel.name} serves one version of Python only: it should use the stable interface")
    return wheel


def command_of(wheel: Path) -> int:
    """Whether `pip install` of the wheel brings a command that works, in an environment made for it."""
    folder = HOME / "fresh"
    venv.create(folder, with_pip=True, clear=True)
    run(program(folder, "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
    hbpca = program(folder, "hbpca")
    lines = [["--version"], ["sample", "digits.csv"], ["fit", "digits.csv"]]
    for line in lines:
        print("$ hbpca", *line, flush=True)
        if code := run(hbpca, *line, cwd=folder, check=False):
            print(f"FAILED: hbpca {' '.join(line)} ended with {code}")
            return 1
    return 0


def main(arguments: list[str]) -> int:
    try:
        newest, oldest, cells, bare = (python_of(name) for name in ENVIRONMENTS)
    except NoIndex as error:
        print(f"skipped: the Python tests need packages, and no package index answers ({error})")
        return 77
    if arguments == ["--prepare"]:
        return 0
    checked = [HERE, HERE.parent / "bench"]
    run(newest, "-m", "ruff", "check", "--quiet", *checked)
    run(newest, "-m", "ruff", "format", "--check", "--quiet", *checked)
    wheel = build(newest)
    for python in (newest, oldest, cells, bare):
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--force-reinstall", wheel)
    # Away from the sources, so that the wheel is what is imported; skipped tests are listed with the reason.
    tests = HERE / "tests"
    shared = [tests / f"test_{name}.py" for name in ("sklearn_checks", "equality", "estimator")]
    pytest = ["-m", "pytest", "-q", "-rs"]
    modules = [f"sklearn.decomposition.tests.test_{name}" for name in ("pca", "incremental_pca", "truncated_svd")]
    replaced = ["-p", "sklearn_modules", "-p", "no:cacheprovider", "--pyargs", *modules]
    codes = [
        run(newest, *pytest, tests, *arguments, cwd=HOME, check=False),
        run(oldest, *pytest, *shared, *arguments, cwd=HOME, check=False),
        run(cells, *pytest, tests / "test_scanpy.py", *arguments, cwd=HOME, check=False),
        # scikit-learn's own tests, with its estimators replaced.
        run(newest, *pytest, *replaced, cwd=HOME, check=False, env={**os.environ, "PYTHONPATH": str(tests)}),
        run(bare, tests / "numpy_only.py", cwd=HOME, check=False),
        command_of(wheel),
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
