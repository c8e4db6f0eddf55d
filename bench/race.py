"""One row of the table: all peers on the same data, by turns.

Each peer has a process of its own, which reads the data once. The rounds are interleaved (A, B, C, C, B, A …) so that a slow
spell of the machine hits all alike and nobody always follows the same one, and the fastest round counts. Whoever does not have
the turn is stopped: threads that spin while they wait for work would otherwise slow the others down.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from environment import BENCH, RUST_PEERS
from peers import Peer

#: Reading data and importing a library, with all peers at it at once.
READY_SECONDS = 180
#: After the first round, a peer that took this many times the fastest one's time is not asked again.
HOPELESS = 10


@dataclass
class Runner:
    """A peer's process, and what it has answered."""

    peer: Peer
    process: subprocess.Popen[bytes]
    out: Path
    log: Path
    results: list[dict[str, Any]] = field(default_factory=list)
    #: Why there are no (more) results.
    problem: str = ""

    @classmethod
    def start(cls, peer: Peer, data: Path, k: int, scratch: Path) -> Runner:
        stem = scratch / peer.name.replace(" ", "-")
        out, log = stem.with_suffix(".out"), stem.with_suffix(".log")
        program = [sys.executable, BENCH / "child.py", peer.name] if peer.load else [RUST_PEERS, peer.name]
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [*map(str, program), str(data), str(k), str(out)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
            )
        return cls(peer, process, out, log)

    def answer(self, seconds: float) -> dict[str, Any] | None:
        """The next line, or None with `problem` set."""
        line, end = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return self.fail(f"over {seconds:g} s")
            some = os.read(self.process.stdout.fileno(), 1 << 16)
            if not some:
                self.process.wait()
                return self.fail(self.last_words())
            line += some
        return json.loads(line)

    def fail(self, why: str) -> None:
        self.problem = why
        self.close()

    def last_words(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f"failed: {telling(lines)[:160] if lines else f'exit code {self.process.returncode}'}"

    def turn(self, limit: float) -> None:
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(b"go\n")
        except BrokenPipeError:
            self.fail(self.last_words())
            return
        result = self.answer(limit)
        if result is not None:
            self.results.append(result)
            self.process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def components(self, k: int) -> np.ndarray:
        return np.fromfile(self.out, dtype="<f8").reshape(k, -1)

    def fastest(self) -> float:
        return min(result["seconds"] for result in self.results)


def race(peers: list[Peer], data: Path, k: int, *, repeat: int, limit: float, scratch: Path) -> list[Runner]:
    scratch.mkdir(parents=True, exist_ok=True)
    runners = [Runner.start(peer, data, k, scratch) for peer in peers]
    try:
        for runner in runners:
            if runner.answer(READY_SECONDS) is not None:
                runner.process.send_signal(signal.SIGSTOP)
        for turn in range(repeat):
            for runner in running(runners)[:: -1 if turn % 2 else 1]:
                runner.turn(limit)
    finally:
        for runner in runners:
            runner.close()
    return runners


def running(runners: list[Runner]) -> list[Runner]:
    alive = [runner for runner in runners if not runner.problem]
    if not all(runner.results for runner in alive):
        return alive
    best = min((runner.fastest() for runner in alive), default=0.0)
    return [runner for runner in alive if runner.fastest() <= HOPELESS * best]


def telling(lines: list[str]) -> str:
    """The line that says what went wrong: the one after `panicked at` of a Rust program, else the last."""
    after = [lines[i + 1] for i, line in enumerate(lines[:-1]) if "panicked at" in line]
    return (after or lines[-1:])[0].strip()
