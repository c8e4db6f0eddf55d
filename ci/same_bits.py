#!/usr/bin/env python3
"""Do two builds of the command line give the same bits?

    ci/same_bits.py record BINARY -o hashes.json       before a change that must not change results
    ci/same_bits.py compare hashes.json BINARY         after it

Fits small data of many kinds in many ways and keeps, of every fit, hashes of the model's tensors, the certificate and how the
run ended. `compare` prints every fit of which something differs, and what; its exit code is 1 then. Keys that a later version
adds are passed over. Record and compare on the same machine: the kernels depend on its processor. Needs NumPy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

MANY = ["auto", "covariance", "krylov", "anchored"]  # find many components
ONE = ["power", "power-m", "oja", "vr-pca", "vr-power-m", "vr-hb-power"]  # find one
PREPARATIONS = ["", "--scale std", "--no-center", "--scale minmax"]
RUN = ["outcome", "solver", "passes", "full_passes", "statistics_passes", "k", "exit_code"]
SECONDS = 120  # that a fit may take; most take less than one

#: Arguments of fits; {a|b} stands for either. `X / A / B` is a run with X and A, resumed with X and B.
LISTED = """
tall64.npy --solver power-m --momentum oracle --lambda2 3.0
tall32.npy --solver vr-power-m --lambda2 3.0 --batch 10% --epoch 20 --max-passes 9 --seed 5
text32.npz --solver vr-hb-power --eta 0.3 --batch 50 --epoch 30 --max-passes 9
text64.npz --solver oja --eta 0.5 --batch 5% --max-passes 9 --threads 1
text64.svm -k 3 --n-columns 3000 {--solver auto|--solver krylov --precision f32 --tol 1e-3}
# C from AAᵀ, which two passes are too few for
wide{32|64}.npy --solver covariance {-k 1|-k 12 --scale std|-k 3 --no-center|-k 20 --scale minmax|-k 3 --max-passes 2}
wide{32|64}.npy {-k 3 --solver krylov --scale std --tol 1e-10|-k 12 --threads 1}
# C in f32, measured with its vectors or with probes; decomposed by a Krylov space, by a reduction or as a whole
square{32|64}.npy --solver covariance {-k 1|-k 3 --scale std|-k 12 --no-center|-k 20 --scale minmax|-k 3 --tol 1e-10}
square{32|64}.npy {-k 200 --solver covariance --tol 1e-4|-k 12 --solver krylov --tol 1e-10|-k 3 --solver anchored --scale std}
# backgrounds that are left out; margins, and whole numbers whose sums are exact
{pictures32|pictures64|whole32}.npy --solver covariance {-k 3|-k 1 --scale std|-k 12 --no-center|-k 20 --scale minmax}
{pictures32|pictures64|whole32}.npy {-k 12|-k 3 --solver krylov --scale std}
# a Krylov space of C that does not pay, eigenvalues that are there twelve times, f32 that hardly suffices, few columns
noise{32|64}.npy -k 3 --solver {covariance|krylov --max-passes 20|anchored --max-passes 20}
copies{32|64}.npy -k {3|5|12} --solver {covariance|krylov|anchored} --no-center
square32.npy -k {3|20} --solver covariance --tol {1.2e-7|1e-2}
few{32|64}.npz -k 3 --solver {covariance|krylov|anchored} {--center|--scale std}
# long vectors: the side of the rows, or of the columns where passes are counted; a basis in f32
long32.npz --solver krylov -k {1|3|12|30} --threads {1|2} {--center|--no-center|--scale std}
long32.npz --solver krylov -k {1|3} {--max-passes 150|--no-center --max-passes 150|--scale std --max-passes 9|--precision mixed}
long64.npz --solver krylov {--no-center --tol 1e-10|-k 3|-k 12 --precision f32 --tol 1e-3}
{long32|text32}.npz --solver krylov -k {5|6|7}
long32.npz {-k 3|-k 3 --solver anchored --no-center|--solver power --max-passes 30}
# precisions, shares of the variance, tolerances, starts
{tall32|square32}.npy -k 3 --solver {covariance|krylov|anchored} --precision {f32 --tol 1e-3|mixed|f64 --scale std}
tall64.npy -k 3 --solver {covariance|krylov|anchored} --precision {f32 --tol 1e-3 --no-center|mixed --scale minmax}
text32.npz -k 3 --solver {krylov|anchored} --precision {f32 --tol 1e-3|mixed --scale std|f64 --no-center}
{tall32|tall64|pictures32}.npy -k 0.9 --solver {auto|covariance|krylov|anchored}
{text32.npz -k 0.2 --solver krylov|text64.npz -k 0.1 --solver anchored --no-center}
{tall64.npy|text32.npz --max-passes 4} --solver {covariance|krylov|anchored|power-m} --tol 1e-10 --seed 7
{tall32.npy --start tall|text32.npz --no-center --start text}.safetensors -k 3 --solver {krylov|anchored}
big32.npy -k 3 --solver {krylov|anchored} {--scale std|--center} --start big.safetensors --memory 36M
{tall32.npy --start tall.safetensors|big32.npy --start big.safetensors --memory 36M} --solver power-m --max-passes 30
# on disk: shares, scales that a sample does not tell, long vectors, and more columns than C could be formed of
big{32|64}.npy -k 0.9 --memory 36M {--solver krylov|--solver auto|--solver anchored --tol 1e-10}
odd32.npy -k 3 --solver {krylov|anchored|covariance} --scale std --memory 30M
{big32.npy --memory 38M|lines32.npz --memory 43M} -k 3 --solver anchored --scale std
deep32.npz -k 3 {--memory 40M|--memory 60M --solver anchored --no-center}
broad32.npy -k 3 --memory 44M {--solver auto|--solver krylov --scale minmax}
# resumed: in memory, on disk, with a basis in f32, on the side of the rows, on the way to a share
{square32.npy --scale std|square64.npy|text32.npz|text64.npz --no-center} RESUMED
{big32.npy|big64.npy --scale std|big32.chunks} --memory 36M RESUMED
{lines32.npz|lines64.npz --scale std|lines64.chunks} --memory 40M RESUMED
{square32.npy -k 12|long32.npz -k 3|long32.npz -k 3 --no-center} --solver krylov / --tol 1e-2 / --tol 1e-9
long32.npz -k 4 --scale std --solver krylov / --max-passes 200 / --max-passes 999
square32.npy -k {3|20} --solver covariance / --tol 1e-5 / --tol 1e-12
tall64.npy -k 0.9 --solver krylov / --max-passes 3 / --max-passes 400
"""


def expand(text: str) -> list[str]:
    """`a{b|c}` is `ab` and `ac`."""
    head, brace, rest = text.partition("{")
    choices, _, tail = rest.partition("}")
    return [head + choice + more for choice in choices.split("|") for more in expand(tail)] if brace else [text]


def fits() -> list[str]:
    """All fits: those of the list, and every solver on every storage."""
    listed = LISTED.replace("RESUMED", "-k 3 --solver {krylov|anchored} --tol 1e-11 / --max-passes 2 / --max-passes 99")
    found = [args for line in listed.splitlines() if line and line[0] != "#" for args in expand(line)]
    storages = ["tall32.npy", "tall64.npy", "text32.npz", "text64.npz"]
    storages += expand("{big32.npy|big64.npy|part-a.npy part-b.npy|big32.chunks} --memory 38M")
    storages += expand("lines{32.npz|64.npz|32.chunks|64.chunks} --memory 40M")
    for i, storage in enumerate(storages):
        passes = 8 if "--memory" in storage else 250  # enough for a step size from a sample
        for j, solver in enumerate(MANY + ONE):
            args = f"{storage} --solver {solver} --threads {1 + (i + j) % 2}"
            for h, k in enumerate([1, 3, 12]):
                if (i + j) % 3 == h or (solver in MANY and passes > 8):
                    limit = f"-k {k}" if solver in MANY else f"--max-passes {passes}"
                    found.append(f"{args} {limit} {PREPARATIONS[(i + j + h) % 4]}")
            if solver in ONE and i % 2 == 0:
                found.append(f"{args} {PREPARATIONS[(i + j) % 4]} --tol 1e-11 / --max-passes 8 / --max-passes 12")
    # The machine shall not choose the threads.
    found = [fit if "--threads" in fit else fit.replace(" ", " --threads 2 ", 1) for fit in found]
    return [" ".join(fit.split()) for fit in found]


def dense(seed: int, n: int, d: int) -> np.ndarray:
    """Columns of falling size that have five things in common, without a product whose bits a library might change."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) / (1 + np.arange(d) / 8)
    for i in range(5):
        x += np.multiply.outer(rng.standard_normal(n), rng.standard_normal(d)) / (1 + i)
    return x + rng.uniform(-2, 2, d)


def write_sparse(seed: int, n: int, d: int, each: int, files: list[Path]) -> None:
    """Rows of at most `each` entries, most of them in the first columns, as SciPy's CSR or as LIBSVM text."""
    rng = np.random.default_rng(seed)
    rows = [np.unique((d * rng.random(each) ** 3).astype(np.int32)) for _ in range(n)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    indices = np.concatenate(rows)
    data = np.round(rng.uniform(0.5, 2, len(indices)), 3) / (1 + 20 * indices / d)
    for file in files:
        if file.suffix == ".npz":
            values = data.astype(np.float32 if "32" in file.name else np.float64)
            np.savez(file, indices=indices, indptr=indptr, format=np.array(b"csr"), shape=np.array([n, d]), data=values)
        else:
            entries = [f"{j + 1}:{x!r}" for j, x in zip(indices.tolist(), data.tolist())]
            file.write_text("".join(f"1 {' '.join(entries[a:b])}\n" for a, b in pairwise(indptr)))


def prepare(binary: Path, folder: Path) -> dict[str, str]:
    """Writes the data. Returns the hashes of the files, without those that the binary makes."""
    both = {"tall": dense(1, 3000, 40), "wide": dense(2, 400, 1500), "square": dense(3, 2000, 700)}
    both["big"] = dense(4, 40_000, 100)
    both["noise"] = np.random.default_rng(5).standard_normal((1200, 640))
    both["noise"][:, :50] = 1.5  # constant columns
    both["copies"] = np.tile(np.diag(np.repeat([3.0, 2.0, 1.0], [12, 12, 76])), (30, 1))
    blank = np.repeat(np.random.default_rng(6).random((2000, 15)) < 0.85, 20, axis=1)
    both["pictures"] = np.where(blank, -0.4, dense(7, 2000, 300))
    both["whole"] = np.round(np.clip(60 + 20 * dense(8, 2000, 300), 0, 255))
    both["whole"][:, :40] = 0  # margins
    both["odd"] = dense(9, 20_000, 100)
    both["odd"][7777, 0] = 1e6  # what a sample says of the scale is far off
    both["broad"] = dense(10, 4000, 1500)
    for name, x in both.items():
        np.save(folder / f"{name}64.npy", x)
        np.save(folder / f"{name}32.npy", x.astype(np.float32))
    np.save(folder / "part-a.npy", both["big"][:17_000].astype(np.float32))
    np.save(folder / "part-b.npy", both["big"][17_000:].astype(np.float32))
    write_sparse(11, 1500, 3000, 40, [folder / f"text{kind}" for kind in ["32.npz", "64.npz", "64.svm"]])
    write_sparse(30, 1200, 9000, 20, [folder / "long32.npz", folder / "long64.npz"])
    write_sparse(12, 3000, 20, 30, [folder / "few32.npz", folder / "few64.npz"])
    write_sparse(13, 40_000, 9000, 40, [folder / "deep32.npz"])
    write_sparse(14, 60_000, 400, 60, [folder / "lines32.npz", folder / "lines64.npz"])
    hashes = {file.name: digest(file.read_bytes()) for file in sorted(folder.iterdir())}
    for args in ["big32.npy big32.chunks", "lines32.npz lines32.chunks", "lines64.npz lines64.chunks"]:
        subprocess.run([binary, "convert", "-q", "--part-size", "1", *args.split()], cwd=folder, check=True)
    for data, model in [("tall32.npy", "tall"), ("text32.npz --no-center", "text"), ("big64.npy --scale std", "big")]:
        args = f"{data} -k 3 --solver krylov --max-passes 2 -o {model}.safetensors --threads 2".split()
        subprocess.run([binary, "fit", "-q", *args], cwd=folder, stdout=subprocess.DEVNULL)
    return hashes


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def run(binary: Path, folder: Path, args: str) -> tuple[dict, str]:
    """What `--json` says, with the exit code, and what went wrong."""
    k = [] if "-k " in args else ["-k", "1"]
    command = [binary, "fit", "-q", "--json", "-o", "model.safetensors", *k, *args.split()]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {}, f"not done in {SECONDS} s"
    if done.returncode not in [0, 1]:
        return {}, f"exit code {done.returncode}: {done.stderr.strip()}"
    said = json.loads(done.stdout)
    wrong = "memory and disk are mixed up" if ("stream" in said) != ("--memory" in args) else ""
    return said | {"exit_code": done.returncode}, wrong


def parts(binary: Path, folder: Path, fit: str) -> dict:
    """The parts of a fit, or why there are none."""
    args, *resumed = fit.split(" / ")
    earlier = 0
    if resumed:
        (folder / "run.ckpt").unlink(missing_ok=True)
        said, wrong = run(binary, folder, f"{args} {resumed[0]} --checkpoint run.ckpt")
        if wrong:
            return {"failed": f"before it was resumed: {wrong}"}
        args, earlier = f"{args} {resumed[1]} --resume run.ckpt", said["passes"]
    said, wrong = run(binary, folder, args)
    if wrong or said["passes"] <= earlier:
        return {"failed": wrong or "there was nothing left to resume"}
    tensors = read_model((folder / "model.safetensors").read_bytes())
    values = {name: tensors.pop(name) for name in ["eigenvalues", "explained_variance"]}
    return {
        "components": {"components": tensors.pop("components")},
        "eigenvalues": values | {"json": said["eigenvalues"], "total_variance": said["total_variance"]},
        "mean/shift/scale": tensors,
        "certificate": said["certificate"],
        "outcome+passes+solver": {key: said.get(key) for key in RUN},
    }


def read_model(model: bytes) -> dict[str, str]:
    """Hashes of all tensors but the history, which holds seconds."""
    start = 8 + int.from_bytes(model[:8], "little")
    header = json.loads(model[8:start])
    places = {name: about["data_offsets"] for name, about in header.items() if name not in ["__metadata__", "history"]}
    return {name: digest(model[start + a : start + b]) for name, (a, b) in sorted(places.items())}


def differs(before: object, now: object) -> bool:
    """Whether something that was there before is another now. Text tells −0 from 0."""
    if isinstance(before, dict) and isinstance(now, dict):
        return any(key not in now or differs(value, now[key]) for key, value in before.items())
    return json.dumps(before) != json.dumps(now)


def record(binary: Path, only: str) -> dict:
    """Hashes of the data, and all fits."""
    with tempfile.TemporaryDirectory(prefix="same-bits-") as folder:
        data = prepare(binary, Path(folder))
        found = {fit: parts(binary, Path(folder), fit) for fit in fits() if only in fit}
    for fit, about in found.items():
        if "failed" in about:
            print(f"failed: {fit}: {about['failed']}")
    return {"data": data, "fits": found}


def compare(before: dict, now: dict) -> bool:
    """Prints what differs. Whether nothing does."""
    if before["data"] != now["data"]:
        print("the data differs: another version of NumPy, or of this script?")
        return False
    fits = sorted(before["fits"].keys() | now["fits"].keys())
    different = 0
    for fit in fits:
        old, new = before["fits"].get(fit, {"not in the record": 1}), now["fits"].get(fit, {})
        what = [part for part in old if differs(old[part], new.get(part))]
        different += bool(what)
        if what:
            print(f"differs: {fit}: {', '.join(what)}")
    print(f"{len(fits)} fits, {f'{different} differ' if different else 'all the same bits'}")
    return bool(fits) and not different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording, comparing = (commands.add_parser(name) for name in ["record", "compare"])
    recording.add_argument("-o", "--output", type=Path, required=True)
    comparing.add_argument("hashes", type=Path)
    for command in [recording, comparing]:
        command.add_argument("binary", type=Path)
        command.add_argument("--only", default="", help="only fits that have this in their arguments")
    args = parser.parse_args()
    clock = time.monotonic()
    now = record(args.binary.resolve(), args.only)
    print(f"{len(now['fits'])} fits in {time.monotonic() - clock:.0f} s")
    if args.command == "record":
        args.output.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        return int(any("failed" in fit for fit in now["fits"].values()))
    before = json.loads(args.hashes.read_text())
    before["fits"] = {name: fit for name, fit in before["fits"].items() if args.only in name}
    return int(not compare(before, now))


if __name__ == "__main__":
    sys.exit(main())
