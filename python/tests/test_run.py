"""While a fit runs: callbacks, progress, warnings, signals, threads."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from data import with_spectrum

from hbpca import PCA, ConvergenceWarning, solve
from hbpca._progress import ProgressLine


@pytest.fixture(scope="module")
def X():
    return with_spectrum(4000, 60, 60)


def test_callbacks_see_every_record_in_the_calling_thread(X):
    seen = []
    pca = PCA(2, solver="krylov", tol=1e-10, callback=lambda r: seen.append((threading.get_ident(), r)) and None).fit(X)
    assert [record for _, record in seen] == pca.history_
    assert {thread for thread, _ in seen} == {threading.get_ident()}
    assert set(seen[0][1]) == {"passes", "full_passes", "seconds", "theta", "residual", "eta", "beta", "lambda2"}
    assert pca.history_[-1]["passes"] == pytest.approx(pca.n_passes_)


def test_callbacks_stop_a_fit(X):
    with pytest.warns(ConvergenceWarning, match="'interrupted'.*warm_start=True"):
        pca = PCA(1, solver="power", tol=0.0, callback=lambda record: record["passes"] >= 3).fit(X)
    assert pca.outcome_ == "interrupted" and len(pca.history_) == 3


def test_exceptions_of_callbacks_reach_the_caller(X):
    calls = []

    def fail(record):
        calls.append(record)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        PCA(1, solver="power", tol=0.0, callback=fail).fit(X)
    assert len(calls) == 1


def test_a_spent_budget_is_said_with_numbers(X):
    with pytest.warns(ConvergenceWarning) as caught:
        pca = PCA(1, solver="power", tol=1e-12, max_passes=3).fit(X)
    text = str(caught[0].message)
    assert pca.outcome_ == "budget" and pca.n_passes_ <= 3
    assert f"{pca.certificate_.worst:.1e}" in text and "tol = 1e-12" in text and "Raise max_passes" in text
    assert caught[0].filename == __file__


def test_the_floor_of_the_precision_is_said(X):
    with pytest.warns(ConvergenceWarning, match="'stagnated'.*raise tol"):
        assert PCA(1, tol=1e-18).fit(X).outcome_ == "stagnated"


def test_convergence_is_silent(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PCA(3).fit(X).outcome_ == "converged"


@pytest.fixture
def heeded():
    """Python's own answer to Ctrl-C, which shells take from what they run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("with_callback", [False, True])
def test_ctrl_c_is_prompt(X, with_callback, heeded):
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        # No tolerance that can be met: only the signal ends it before a minute.
        callback = (lambda record: None) if with_callback else None
        solve(X, "oja", eta=1e-9, tol=1e-15, max_passes=1e12, max_seconds=60, callback=callback)
    timer.join()
    assert time.monotonic() - started < 5
    assert PCA(1).fit(X).outcome_ == "converged"  # the next fit is none the worse


LONG_FIT = """
import signal
import sys
import numpy as np
from hbpca import PCA

signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.memmap(sys.argv[1], dtype=np.float32, mode="r").reshape(-1, 64)
print("fitting", flush=True)
PCA(2).fit(X)
print("fitted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_does_not_wait_for_the_end_of_a_pass(tmp_path):
    # One pass takes many seconds: 32 GB, in a hole that takes no room on the disk.
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(32 << 30)
    command = [sys.executable, "-c", LONG_FIT, tmp_path / "hole"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "fitting\n"
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        said, complaint = process.communicate(timeout=60)
        took = time.monotonic() - sent
    assert process.returncode == -signal.SIGINT and said == ""
    assert complaint.rstrip().endswith("KeyboardInterrupt")
    assert took < 2


def test_two_python_threads_give_the_bits_of_one(X):
    Y = with_spectrum(3000, 50, 50, seed=1)
    alone = [PCA(3, solver="anchored", tol=1e-9).fit(data).components_ for data in (X, Y)]
    together = [None, None]

    def fit(i, data):
        together[i] = PCA(3, solver="anchored", tol=1e-9).fit(data).components_

    threads = [threading.Thread(target=fit, args=pair) for pair in enumerate((X, Y))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together):
        np.testing.assert_array_equal(one, other)


def test_threads_beyond_those_of_the_machine_are_not_started(X):
    with pytest.warns(UserWarning, match=r"threads = 1000000: this machine runs \d+ at once"):
        many = PCA(3, threads=1_000_000, solver="krylov").fit(X)
    assert np.array_equal(many.components_, PCA(3, threads=1, solver="krylov").fit(X).components_)


def test_the_number_of_threads_does_not_matter(X):
    one, two = (PCA(3, threads=threads, solver="krylov").fit(X) for threads in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)


def test_the_interpreter_is_free_while_computing(X):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    solve(X, "oja", eta=1e-9, tol=1e-15, max_seconds=0.5, max_passes=1e12)
    elapsed = time.monotonic() - started
    done.set()
    thread.join()
    within = [t for t in ticks if started <= t <= started + elapsed]
    assert len(within) > 10


class Terminal(io.StringIO):
    def isatty(self):
        return True


# Notebooks have a stream of this module, which draws over a line as a terminal does but is none.
Notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})


@pytest.mark.parametrize("place", [Terminal, Notebook])
def test_progress_is_one_line_on_a_terminal_and_in_a_notebook(place):
    record = {"passes": 2.0, "seconds": 0.1, "theta": 4.0, "residual": 2.0}
    line = ProgressLine(1e-6, place())
    line(record)
    line.finish({**record, "residual": 4e-7}, "converged")
    first, second = line.out.getvalue().split("\r")[1:]
    assert "2.0 passes" in first and "residual 5.0e-01 (tol 1e-06)" in first
    assert "residual 1.0e-07" in second and second.endswith("converged\n")


def test_progress_elsewhere_is_lines_once_a_second(X, capsys):
    PCA(1, verbose=1).fit(X)
    err = capsys.readouterr().err
    assert "\r" not in err and err.endswith(": converged\n")
    PCA(1).fit(X)
    assert capsys.readouterr().err == ""


class Recorder:
    """A callback of scikit-learn's protocol that stops a fit after `most` iterations."""

    def __init__(self, most):
        self.most, self.events, self.offered = most, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, metadata, fitted_estimator):
        self.events.append(f"begin {context.task_name}")
        self.offered.append(fitted_estimator)
        self.given = X, metadata

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        self.events.append(f"end {context.task_name}")
        self.offered.append(fitted_estimator)
        return self.events.count("end iteration") >= self.most


@pytest.fixture
def protocol():
    return pytest.importorskip("sklearn.callback", reason="the protocol came with scikit-learn 1.9")


@pytest.mark.parametrize("n_components, solver, most", [(1, "power", 3), (0.9, "krylov", 1), (None, "krylov", 1)])
def test_scikit_learns_callbacks_are_offered_every_iterate(X, protocol, n_components, solver, most):
    recorder = Recorder(most)
    weights = np.ones(len(X))
    pca = PCA(n_components, solver=solver, tol=0.0).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning):
        pca.fit(X, sample_weight=weights)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[2:-2] == ["begin iteration", "end iteration"] * most
    assert recorder.events[-2:] == ["end fit", "teardown"]
    np.testing.assert_array_equal(recorder.given[0], X)
    assert recorder.given[1]["sample_weight"] is weights

    # Nothing is known before the first iterate; then each begins with what the last one ended with.
    assert recorder.offered[:2] == [None, None]
    ends, begins = recorder.offered[2:-1:2], recorder.offered[3:-1:2]
    for last, first in zip(ends, begins):
        np.testing.assert_array_equal(last.components_, first.components_)
    assert [estimator.history_ for estimator in ends] == [pca.history_[: i + 1] for i in range(most)]
    for estimator in ends:
        assert estimator is not pca and estimator.transform(X[:5]).shape == (5, estimator.n_components_)
    np.testing.assert_array_equal(ends[-1].transform(X), pca.transform(X))
    assert recorder.offered[-1].outcome_ == pca.outcome_ == "interrupted"


def test_scikit_learns_callbacks_see_a_fit_that_converges_or_fails(X, protocol):
    recorder = Recorder(most=1000)
    pca = PCA(1, solver="covariance").set_callbacks(recorder).fit(X)
    # The second iteration was not needed, and ends with nothing to offer.
    assert recorder.events[2:-2] == ["begin iteration", "end iteration"] * 2
    assert recorder.offered[-2] is None and recorder.offered[-1].outcome_ == pca.outcome_ == "converged"
    np.testing.assert_array_equal(recorder.offered[2].components_, pca.components_)

    failing = PCA(n_components=1000).set_callbacks(Recorder(most=1))
    with pytest.raises(ValueError):
        failing.fit(X)
    assert failing._skl_callbacks[0].events[-1] == "teardown"


def test_scikit_learn_can_monitor_a_score(X, protocol):
    monitor = protocol.ScoringMonitor(scoring={"likelihood": lambda pca, X, y: pca.score(X)})
    pca = PCA(1, solver="power", tol=1e-3).set_callbacks(monitor).fit(X, np.zeros(len(X)))
    scores = [row["likelihood"] for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    # The first iterate is a random direction, each further one explains more.
    assert len(scores) == len(pca.history_)
    assert scores == sorted(scores) and scores[-1] == pytest.approx(pca.score(X))
