"""Everything the race needs, kept under `target/bench`: a virtual environment with the peers, hbpca's wheel, the Rust peers.

Uses the standard library alone: it runs before there is anything else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
HOME = TARGET / "bench"
PYTHON = HOME / "python" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
RUST_PEERS = HOME / "rust-peers" / "release" / ("rust-peers.exe" if os.name == "nt" else "rust-peers")
MISSING = HOME / "missing.json"

#: Without these there is no benchmark.
NEEDED = ["numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1", "matplotlib==3.11.2", "maturin==1.16.0"]
#: Without one of these it has one peer less.
OPTIONAL = ["primme==3.2.3", "scikit-learn-intelex==2026.2.0", "fbpca==1.0", "randomized-svd==0.5.0"]

ADVICE = {"primme": "it needs a C compiler, BLAS and LAPACK (Debian: apt install gcc libopenblas-dev), then use --reinstall"}


def make(*, again: bool) -> None:
    """Bring the environment up to date; what could not be had is written to `MISSING`, with the reason, and not tried
    anew unless asked to."""
    install_peers(again)
    install_hbpca()
    missing = {**json.loads(MISSING.read_text()), **build_rust_peers()}
    MISSING.write_text(json.dumps(missing, indent=1))


def install_peers(again: bool) -> None:
    stamp, wanted = HOME / "installed.txt", "\n".join([*NEEDED, *OPTIONAL])
    missing = json.loads(MISSING.read_text()) if MISSING.exists() else {}
    if stamp.exists() and stamp.read_text() == wanted and not again:
        MISSING.write_text(json.dumps({name: why for name, why in missing.items() if name != "rust-peers"}))
        return
    say("installing the peers")
    if not PYTHON.exists():
        venv.create(HOME / "python", with_pip=True)
    must(*pip(*NEEDED))
    missing = {}
    for requirement in OPTIONAL:
        name = requirement.partition("==")[0]
        done = run(*pip(requirement))
        if done.returncode:
            missing[name] = "; ".join([last_error(done.stderr), *filter(None, [ADVICE.get(name)])])
    stamp.write_text(wanted)
    MISSING.write_text(json.dumps(missing))


def install_hbpca() -> None:
    say("building hbpca")
    wheels = HOME / "wheels"
    for old in wheels.glob("*.whl"):
        old.unlink()
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PYO3_PYTHON": str(PYTHON)}
    maturin = [PYTHON, "-m", "maturin", "build", "--release", "--interpreter", PYTHON, "--out", wheels]
    must(*maturin, cwd=ROOT / "python", env=environment)
    must(*pip("--no-deps", "--force-reinstall", next(wheels.glob("*.whl"))))


def build_rust_peers() -> dict[str, str]:
    say("building the Rust peers")
    done = run("cargo", "build", "--release", "--locked", "--target-dir", HOME / "rust-peers", cwd=BENCH / "rust-peers")
    return {"rust-peers": last_error(done.stderr)} if done.returncode else {}


def pip(*arguments: object) -> list[object]:
    return [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)


def must(*command: object, **options: object) -> None:
    done = run(*command, **options)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        sys.exit(f"{' '.join(str(part) for part in command[:5])} … ended with {done.returncode}")


def last_error(text: str) -> str:
    """The most telling line of a failed build: its last one that speaks of an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no message"])[-1][:200]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
