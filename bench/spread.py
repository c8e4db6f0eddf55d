"""What the benchmarks of spread rows share: data, the largest angle, peers that take turns."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parent.parent

#: What a peer found: components, and a remark.
Found = tuple[np.ndarray, str]


def generated(rows: int, columns: int) -> np.ndarray:
    """Standard deviations that fall by 3 % from column to column, rotated, with means of 5."""
    generator = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(generator.normal(size=(columns, columns)))
    return generator.normal(size=(rows, columns)) * 0.97 ** np.arange(columns) @ rotation + 5


def text(rows: int, columns: int, a_row: int = 30) -> sp.csr_matrix:
    """Counts of words whose frequencies fall as those of a language do, in rows of twenty topics."""
    generator = np.random.default_rng(0)
    topics = generator.integers(0, 20, size=rows)
    frequent = (columns * generator.random(size=(rows, a_row)) ** 4).astype(np.int64)
    # Half of the words of a row are those of its topic, from a window of its own.
    window = columns // 40
    own = topics[:, None] * window + (window * generator.random(size=(rows, a_row)) ** 3).astype(np.int64)
    chosen = np.where(generator.random(size=(rows, a_row)) < 0.5, own, frequent)
    starts = np.arange(0, rows * a_row + 1, a_row)
    counts = sp.csr_matrix((np.ones(rows * a_row), chosen.ravel(), starts), shape=(rows, columns))
    counts.sum_duplicates()
    return counts


def exact(X: np.ndarray, k: int) -> np.ndarray:
    """The leading components, by LAPACK."""
    _, vectors = np.linalg.eigh(np.cov(X.T))
    return vectors[:, ::-1][:, :k].T


def sine(V: np.ndarray, leading: np.ndarray) -> float:
    """Of the largest angle between two spaces; `leading` has orthonormal rows."""
    V, _ = np.linalg.qr(np.asarray(V, dtype=float).T)
    return float(np.linalg.norm(V - leading.T @ (leading @ V), 2))


def told(engine: str, peer: str, seconds: float | None, angle: float | None, remark: str) -> None:
    """One line of JSON for the program that started this one."""
    about = {"engine": engine, "peer": peer, "seconds": seconds, "sine": angle, "remark": remark}
    print(json.dumps(about), flush=True)


def in_turns(engine: str, peers: dict[str, Callable[[], Found]], leading: np.ndarray, repeat: int, leads: bool = True) -> None:
    """A, B, C, A, B, C, …; the fastest of each counts. The first round warms up and does not. A peer that fails once is out."""
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    found: dict[str, Found] = {}
    for turn in range(repeat + 1):
        for name, fit in list(peers.items()):
            start = time.perf_counter()
            try:
                found[name] = fit()
            except Exception as error:
                peers.pop(name)
                if leads:
                    said = next((line for line in str(error).splitlines() if "requirement failed" in line), str(error))
                    told(engine, name, None, None, f"{type(error).__name__}: {' '.join(said.split())[:160]}")
                continue
            if turn > 0:
                seconds[name].append(time.perf_counter() - start)
    for name in peers:
        if leads:
            components, remark = found[name]
            told(engine, name, min(seconds[name]), sine(components, leading), remark)


def rounds_of(pca) -> str:
    """What hbpca says of itself: a round for the statistics, and one for every pass."""
    return f"{pca.solver_}, {pca.n_passes_ + 1:.0f} rounds, certified"


def arguments() -> Iterator[str]:
    """Of a child: the folder with `x.npy` and `leading.npy`, k, and how often."""
    return iter(sys.argv[1:])
