#!/usr/bin/env python3
"""Build the wheel and test it in environments of its own, which are kept for the next time.

    python/run_tests.py [pytest arguments]

Three environments under `target/python/`: the newest scikit-learn with everything optional, the oldest one supported with the
checks of scikit-learn and the tests of equality, and NumPy alone. Ends with pytest's closing lines, and fails if any part does.
"""

from __future__ import annotations

import os
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
        "polars",
        "pyarrow",
        "matplotlib",
        "hypothesis",
        "pytest",
        "maturin>=1.9,<2",
    ],
    "oldest": ["scikit-learn==1.6.0", "scipy", "pandas", "hypothesis", "pytest"],
    "bare": ["numpy"],
}


def python_of(name: str) -> Path:
    """The environment's interpreter; made, and filled, where it is missing or its list has changed."""
    folder = HOME / name
    stamp, wanted = folder / "installed.txt", "\n".join(ENVIRONMENTS[name])
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment {name}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *ENVIRONMENTS[name])
        stamp.write_text(wanted)
    return python


def run(*command: object, cwd: Path = HERE, check: bool = True, **options: object) -> int:
    done = subprocess.run([str(part) for part in command], cwd=cwd, check=False, text=True, **options)
    code = done.returncode
    if check and code:
        print(done.stderr or "", file=sys.stderr)
        sys.exit(f"{' '.join(str(part) for part in command[:6])} … ended with {code}")
    return code


def build(python: Path) -> Path:
    """The wheel, of the profile that the Rust tests have built already: its checks for overflow stay on."""
    for old in WHEELS.glob("*.whl"):
        old.unlink()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PYO3_PYTHON": str(python)}
    maturin = [python, "-m", "maturin", "build", "--profile", "dev", "--interpreter", python, "--out", WHEELS]
    run(*maturin, env=environment, stderr=subprocess.PIPE)
    return next(WHEELS.glob("*.whl"))


def main() -> int:
    arguments = sys.argv[1:]
    wheel = build(python_of("newest"))
    for name in ENVIRONMENTS:
        python = python_of(name)
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--force-reinstall", wheel)
    # Away from the sources, so that the wheel is what is imported.
    tests = HERE / "tests"
    codes = [
        run(python_of("newest"), "-m", "pytest", "-q", tests, *arguments, cwd=HOME, check=False),
        run(
            python_of("oldest"),
            "-m",
            "pytest",
            "-q",
            tests / "test_sklearn_checks.py",
            tests / "test_equality.py",
            tests / "test_estimator.py",
            *arguments,
            cwd=HOME,
            check=False,
        ),
        run(python_of("bare"), HERE / "tests" / "numpy_only.py", cwd=HOME, check=False),
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
