#!/usr/bin/env python3
"""Fit a file that does not fit the memory: hbpca --memory against scikit-learn's IncrementalPCA and dask's svd_compressed.

    python3 bench/out_of_core.py [--size 1G] [--memory 256M] [--columns 1024] [-k 10] [--seed 0] [--folder DIR] [--grow]

Generates the data once (its seed is printed), drops it from the page cache before every run where rights allow, and says so
where they do not. All times come from one run; ratios are what counts. The peak of peers includes the
pages of the file they map. `--size 8G --memory 1G` is the large run, `--grow` fits
files that grow tenfold instead of racing.
Needs NumPy; peers that cannot be imported are left out with a word. `cargo build --release` makes the binary.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "hbpca"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
#: What hbpca reads at a time for budgets from 256 MiB on.
CHUNK = 16 << 20

#: A peer in a process of its own: prints one JSON object with seconds and peak bytes, saves the components.
PEER = """
import json, sys, time
import numpy as np
name, path, k, memory, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
X = np.load(path, mmap_mode="r")
n, d = X.shape
start = time.perf_counter()
if name == "IncrementalPCA":
    from sklearn.decomposition import IncrementalPCA
    # It stacks a batch with k rows, centres a copy and decomposes both: about six batches live at once.
    batch = max(k, d, memory // (6 * 8 * d))
    V = IncrementalPCA(n_components=k, batch_size=batch).fit(X).components_
else:
    import dask.array as da
    rows = max(1, memory // (16 * 8 * d))
    A = da.from_array(X, chunks=(rows, d)).astype("f8")
    A = A - A.mean(axis=0)
    _, _, V = da.linalg.svd_compressed(A, k, n_power_iter=2, compute=False, seed=0)
    import dask
    V = dask.compute(V, scheduler="threads", num_workers=2)[0]
seconds = time.perf_counter() - start
np.save(out, np.asarray(V, dtype="f8"))
hwm = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps({"seconds": seconds, "peak": int(hwm[0]) * 1024}))
"""


def size(text: str) -> int:
    return int(float(text[:-1]) * UNITS[text[-1].upper()]) if text[-1].upper() in UNITS else int(text)


def human(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def generate(path: Path, total: int, d: int, seed: int, ratio: float) -> int:
    """n×d float32 with eigenvalues ratio^i along random directions, and means."""
    n = total // (4 * d)
    wanted = path.with_suffix(".json")
    facts = {"n": n, "d": d, "seed": seed, "ratio": ratio}
    if wanted.exists() and json.loads(wanted.read_text()) == facts:
        return n
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
    shape = (np.sqrt(ratio ** np.arange(d))[:, None] * turn.T).astype("f4")
    mean = rng.standard_normal(d, dtype="f4")
    X = np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(n, d))
    step = max(1, (64 << 20) // (4 * d))
    for start in range(0, n, step):
        rows = min(step, n - start)
        X[start : start + rows] = rng.standard_normal((rows, d), dtype="f4") @ shape + mean
    X.flush()
    del X
    wanted.write_text(json.dumps(facts))
    return n


def drop_cache(path: Path) -> str:
    """Empties the page cache of the file; returns how."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        try:
            Path("/proc/sys/vm/drop_caches").write_text("1")
            return "page cache dropped"
        except OSError:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return "pages given back by posix_fadvise, which the system may ignore"


def read_through(path: Path) -> float:
    """Seconds of reading the file once, in order, in chunks."""
    drop_cache(path)
    buffer = memoryview(bytearray(CHUNK))
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - start


def fit(path: Path, memory: int, k: int, *more: str) -> dict:
    """`hbpca fit`, with its peak memory."""
    drop_cache(path)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.safetensors"
        command = [BINARY, "fit", path, "-k", k, "--memory", memory, "--json", "-q", "-o", model, *more]
        start = time.perf_counter()
        with tempfile.TemporaryFile() as out:
            child = subprocess.Popen([str(x) for x in command], stdout=out)
            peak = watch(child)
            seconds = time.perf_counter() - start
            out.seek(0)
            result = json.loads(out.read() or "{}")
        if child.returncode not in (0, 1):
            sys.exit(f"{' '.join(map(str, command))} failed")
        result |= {"wall": seconds, "peak": peak, "components": components(model)}
    return result


def watch(child: subprocess.Popen) -> int:
    """Waits for a process; returns the most memory that it or one that it started held. (wait4 counts what the parent held at
    the fork.)"""
    peak = 0
    while child.poll() is None:
        for process in family(child.pid):
            try:
                lines = Path(f"/proc/{process}/status").read_text().splitlines()
            except OSError:
                continue
            peak = max([peak, *(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))])
        time.sleep(0.01)
    return peak


def family(process: int) -> list[int]:
    """A process and those that it started: programs may begin as shell scripts."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return [process]
    return [process, *(each for child in children for each in family(int(child)))]


def components(model: Path) -> np.ndarray:
    """The tensor `components` of a .safetensors file."""
    data = model.read_bytes()
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])["components"]
    start, end = entry["data_offsets"]
    kind = {"F64": "<f8", "F32": "<f4"}[entry["dtype"]]
    return np.frombuffer(data[8 + length + start : 8 + length + end], kind).reshape(entry["shape"])


def sine(V: np.ndarray, exact: np.ndarray) -> float:
    """Of the largest principal angle between row spaces, without cancellation."""
    Q, _ = np.linalg.qr(V.T)
    return float(np.linalg.norm(Q - exact.T @ (exact @ Q), 2))


def exact_components(path: Path, k: int) -> np.ndarray:
    """From the covariance, summed in float64 in two passes."""
    X = np.load(path, mmap_mode="r")
    n, d = X.shape
    step = max(1, (32 << 20) // (8 * d))
    mean = sum(X[i : i + step].sum(axis=0, dtype="f8") for i in range(0, n, step)) / n
    C = np.zeros((d, d))
    for i in range(0, n, step):
        A = X[i : i + step] - mean
        C += A.T @ A
    _, vectors = np.linalg.eigh(C / n)
    return vectors[:, ::-1][:, :k].T


def peer(name: str, path: Path, k: int, memory: int) -> dict | None:
    drop_cache(path)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "v.npy"
        command = [sys.executable, "-c", PEER, name, str(path), str(k), str(memory), str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{name}: left out ({done.stderr.strip().splitlines()[-1]})")
            return None
        return json.loads(done.stdout) | {"components": np.load(out)}


def race(path: Path, options: argparse.Namespace) -> None:
    memory = size(options.memory)
    total = path.stat().st_size
    reading = min(read_through(path) for _ in range(2))
    print(f"sequential read: {reading:.2f} s, {human(total / reading)}/s")
    power = fit(path, memory, 1, "--solver", "power", "--max-passes", "4", "--tol", "0")
    seconds = [record["seconds"] for record in power["history"]]
    passes = np.diff(seconds)
    print(f"full pass, one vector: {passes.min():.2f} s, {passes.min() / reading:.2f} of reading")
    exact = exact_components(path, options.k)
    print(f"\n{'':<28} {'seconds':>8} {'read':>6} {'disk passes':>12} {'peak':>10} {'sine':>9}")

    def line(name: str, seconds: float, disk: float | None, peak: int, V: np.ndarray) -> None:
        shown = "" if disk is None else f"{disk:.2f}"
        print(f"{name:<28} {seconds:>8.2f} {seconds / reading:>6.1f} {shown:>12} {human(peak):>10} {sine(V, exact):>9.1e}")

    for tol in options.tol.split(","):
        for solver in options.solvers.split(","):
            run = fit(path, memory, options.k, "--solver", solver, "--tol", tol)
            disk = run["stream"]["bytes_read"] / total if "stream" in run else None
            line(f"hbpca {solver} --tol {tol}", run["wall"], disk, run["peak"], run["components"])
    for name in filter(None, options.peers.split(",")):
        run = peer(name, path, options.k, memory)
        if run:
            line(name, run["seconds"], None, run["peak"], run["components"])


def grow(folder: Path, options: argparse.Namespace) -> None:
    """Predicted and measured cost while n grows tenfold."""
    print(f"{'n':>10} {'bytes':>10} {'predicted':>22} {'measured':>22} {'seconds':>8} {'of reading':>10} {'peak':>10}")
    largest = size(options.size)
    for total in (largest // 100, largest // 10, largest):
        path = folder / f"grow-{total}.npy"
        n = generate(path, total, options.columns, options.seed, options.ratio)
        reading = read_through(path)
        run = fit(path, size(options.memory), options.k, "--solver", "anchored")
        if "stream" not in run:
            print(f"{n:>10} {human(total):>10} fits into the memory and is loaded")
            continue
        stream = run["stream"]
        full = run["full_passes"] + run["statistics_passes"]
        predicted = f"{stream['planned_passes']:.0f} passes {human(stream['planned_bytes'])}"
        measured = f"{full:.0f} passes {human(stream['bytes_read'])}"
        print(
            f"{n:>10} {human(total):>10} {predicted:>22} {measured:>22} {run['wall']:>8.2f} "
            f"{run['wall'] / reading:>10.1f} {human(run['peak']):>10}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", default="1G", help="of the data [1G]")
    parser.add_argument("--memory", default="256M", help="that everybody may take [256M]")
    parser.add_argument("--columns", type=int, default=1024, help="[1024]")
    parser.add_argument("-k", type=int, default=10, help="components [10]")
    parser.add_argument("--tol", default="1e-6,1e-12", help="tolerances of hbpca [1e-6,1e-12]")
    parser.add_argument("--solvers", default="auto,anchored,krylov", help="of hbpca [auto,anchored,krylov]")
    parser.add_argument("--peers", default="IncrementalPCA,dask svd_compressed", help="who else runs; empty for nobody [both]")
    parser.add_argument("--ratio", type=float, default=0.98, help="of consecutive eigenvalues [0.98]")
    parser.add_argument("--seed", type=int, default=0, help="of the data [0]")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "bench" / "out-of-core", help="for the data")
    parser.add_argument("--grow", action="store_true", help="fit files of a hundredth, a tenth and all of --size")
    options = parser.parse_args()
    if not BINARY.exists():
        sys.exit(f"{BINARY} is missing: cargo build --release")
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.grow:
        grow(options.folder, options)
        return
    path = options.folder / "x.npy"
    n = generate(path, size(options.size), options.columns, options.seed, options.ratio)
    print(f"{n} rows × {options.columns} columns of float32, seed {options.seed}; {drop_cache(path)}")
    race(path, options)


if __name__ == "__main__":
    main()
