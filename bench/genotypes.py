#!/usr/bin/env python3
"""Principal components of generated genotypes: hbpca fit x.bed against plink2 --pca approx.

    python3 bench/genotypes.py [--samples 10000] [--variants 100000] [-k 10] [--seed 0] [--folder DIR] [--repeat 3] [--exact]

Generates a .bed file once: populations of a Balding-Nichols model (F = 0.01) in Hardy-Weinberg equilibrium, no missing
genotypes. The reference is hbpca at --tol 1e-10, whose certificate bounds its angle. All times are of whole programs, the
smallest of the rounds, which alternate. `--exact` runs plink2 --pca, which forms the relationship matrix, once. Needs NumPy
and plink2 (on Debian: apt install plink2).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from out_of_core import BINARY, human, watch

N_POPULATIONS, F = 12, 0.01
#: Variants generated together.
BLOCK = 1000
#: Codes of .bed for 0, 1 and 2 copies of A1.
CODES = np.array([3, 2, 0], dtype="u1")


def generate(prefix: Path, n: int, d: int, seed: int) -> None:
    facts = json.dumps({"samples": n, "variants": d, "seed": seed, "populations": N_POPULATIONS, "F": F})
    wanted = prefix.with_suffix(".json")
    if wanted.exists() and wanted.read_text() == facts:
        return
    rng = np.random.default_rng(seed)
    population = np.sort(rng.integers(0, N_POPULATIONS, n))
    with prefix.with_suffix(".bed").open("wb") as bed:
        bed.write(bytes([0x6C, 0x1B, 1]))
        for first in range(0, d, BLOCK):
            count = min(BLOCK, d - first)
            ancestral = rng.uniform(0.05, 0.5, (count, 1))
            share = (1 - F) / F
            frequency = rng.beta(ancestral * share, (1 - ancestral) * share, (count, N_POPULATIONS)).astype("f4")
            f = frequency[:, population]
            u = rng.random((count, n), dtype="f4")
            # One uniform number decides: 2 below f², 1 below f² + 2f(1 − f).
            dosage = (u < f * f).astype("u1") + (u < f * (2 - f))
            codes = np.zeros((count, -(-n // 4) * 4), dtype="u1")
            codes[:, :n] = CODES[dosage]
            quads = codes.reshape(count, -1, 4)
            bed.write((quads[..., 0] | quads[..., 1] << 2 | quads[..., 2] << 4 | quads[..., 3] << 6).tobytes())
    with prefix.with_suffix(".bim").open("w") as bim:
        bim.writelines(
            f"{1 + j % 22}\trs{j}\t0\t{1 + j // 22}\tA\tG\n" for j in sorted(range(d), key=lambda j: (j % 22, j // 22))
        )
    prefix.with_suffix(".fam").write_text("".join(f"0\ts{i}\t0\t0\t0\t-9\n" for i in range(n)))
    wanted.write_text(facts)


def run(command: list) -> tuple[float, int]:
    """Seconds and peak memory of a command that must succeed."""
    begin = time.perf_counter()
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    peak = watch(child)
    if child.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return time.perf_counter() - begin, peak


def eigenvectors(path: Path) -> np.ndarray:
    """The columns PC1 … of a file."""
    with path.open() as file:
        names = file.readline().lstrip("#").split()
        used = [i for i, name in enumerate(names) if name.startswith("PC")]
        return np.loadtxt(file, usecols=used)


def sine(U: np.ndarray, exact: np.ndarray) -> float:
    Q, _ = np.linalg.qr(U)
    return float(np.linalg.norm(Q - exact @ (exact.T @ Q), 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000, help="[10000]")
    parser.add_argument("--variants", type=int, default=100_000, help="[100000]")
    parser.add_argument("-k", type=int, default=10, help="components [10]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--repeat", type=int, default=3, help="rounds [3]")
    parser.add_argument("--exact", action="store_true", help="plink2 --pca too")
    parser.add_argument("--folder", type=Path, default=BINARY.parent.parent / "genotypes")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    prefix = options.folder / f"{options.samples}x{options.variants}"
    generate(prefix, options.samples, options.variants, options.seed)
    bed = prefix.with_suffix(".bed")
    print(
        f"{options.samples:,} samples × {options.variants:,} variants, {N_POPULATIONS} populations, "
        f"F = {F}, seed {options.seed}, {human(bed.stat().st_size)}; k = {options.k}"
    )
    with tempfile.TemporaryDirectory() as folder:
        model, vectors = Path(folder) / "m.safetensors", Path(folder) / "m.eigenvec"

        def hbpca(tol: str) -> tuple[float, int]:
            return run([BINARY, "fit", bed, "-k", options.k, "--scale", "hwe", "--tol", tol, "-q", "-o", model])

        def plink(*how: str) -> tuple[float, int]:
            out = Path(folder) / "p"
            return run(["plink2", "--bfile", prefix, "--pca", options.k, *how, "--seed", "1", "--out", out])

        def scores() -> np.ndarray:
            run([BINARY, "transform", model, bed, "-q", "-o", vectors])
            return eigenvectors(vectors)

        hbpca("1e-10")
        exact = np.linalg.qr(scores())[0]
        programs = {
            "hbpca": (lambda: hbpca("1e-6"), scores),
            "plink2 --pca approx": (lambda: plink("approx"), lambda: eigenvectors(Path(folder) / "p.eigenvec")),
        }
        best: dict[str, tuple] = {}
        for _ in range(options.repeat):
            for name, (fit, result) in programs.items():
                seconds, peak = fit()
                if name not in best or seconds < best[name][0]:
                    best[name] = (seconds, peak, sine(result(), exact))
        if options.exact:
            seconds, peak = plink()
            best["plink2 --pca"] = (seconds, peak, sine(eigenvectors(Path(folder) / "p.eigenvec"), exact))
        print(f"{'':<22}{'seconds':>9}{'ratio':>8}{'peak':>12}{'sine':>10}")
        for name, (seconds, peak, angle) in best.items():
            print(f"{name:<22}{seconds:>9.2f}{seconds / best['hbpca'][0]:>8.2f}{human(peak):>12}{angle:>10.1e}")


if __name__ == "__main__":
    main()
