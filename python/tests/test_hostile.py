"""Input that once ended the interpreter: an exception, every time."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest


def ended(code: str) -> str:
    """What an interpreter of its own prints; it must end by itself."""
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, (run.returncode, run.stderr[-2000:])
    return run.stdout


@pytest.mark.parametrize(
    "damage",
    [
        "X.indptr[5] = 10**8",
        "X.indptr[-1] = 2**31 - 1",
        "X.indptr[0] = -7",
        "X.indptr[3:6] = X.indptr[3:6][::-1]",
        "X.indices[7] = 2**31 - 1",
        "X.indices[7] = -5",
    ],
)
def test_malformed_sparse_matrices_are_refused(damage):
    pytest.importorskip("scipy")
    for call in ["hbpca.PCA(1).fit(X)", "hbpca.solve(X, 'krylov', k=1)", "hbpca.PCA(1).fit(good).transform(X)"]:
        code = f"""
            import numpy as np, scipy.sparse as sp, hbpca
            good = sp.random(50, 20, 0.3, format="csr", random_state=0)
            X = good.copy()
            {damage}
            try:
                {call}
            except ValueError as error:
                print("refused:", error)
        """
        assert ended(code).startswith("refused: "), (damage, call)


def test_columns_beyond_any_memory_are_a_memory_error():
    pytest.importorskip("scipy")
    code = """
        import numpy as np, scipy.sparse as sp, hbpca
        X = sp.csr_matrix((np.ones(3), np.array([0, 5, 2**31 - 2]), np.array([0, 2, 3])), shape=(2, 2**31 - 1))
        for call in (lambda: hbpca.PCA(1).fit(X), lambda: hbpca.solve(X, "krylov", k=1)):
            try:
                call()
            except MemoryError as error:
                print("refused:", error)
    """
    if not (memory := machine_bytes()) or memory > 300 << 30:
        pytest.skip("this machine may hold it")
    assert ended(code).count("refused: not enough memory: ") == 2


@pytest.mark.parametrize(
    "make, change",
    [
        ("sp.random(20_000, 200, 0.05, format='csr', random_state=0, dtype=np.float32)", "X.indices[:] = 2**31 - 1"),
        ("sp.random(20_000, 200, 0.05, format='csr', random_state=0, dtype=np.float32)", "X.indptr[:] = 2**31 - 1"),
        ("sp.random(20_000, 200, 0.05, format='csr', random_state=0, dtype=np.float32)", "X.data[:] = np.nan"),
        ("rng.normal(size=(15_000, 150)).astype('f4')", "X[:] = np.nan"),
        ("rng.normal(size=(15_000, 150)).astype('f4')", "X[7_000:, 7] *= 50"),
        ("(rng.random(size=(15_000, 150)) < 0.1).astype('f4')", "X[:] = 1"),
    ],
)
@pytest.mark.parametrize("solver", ["krylov"])
def test_arrays_that_another_thread_changes_give_any_numbers_and_no_crash(make, change, solver):
    pytest.importorskip("scipy")
    code = f"""
        import threading, time, warnings
        import numpy as np, scipy.sparse as sp, hbpca
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        X = {make}

        def meddle():
            for _ in range(20):
                time.sleep(0.005)
                {change}

        thread = threading.Thread(target=meddle)
        thread.start()
        try:
            hbpca.PCA(3, solver="{solver}", tol=1e-12, max_passes=12).fit(X)
        except (ValueError, RuntimeError) as error:
            print("refused:", error)
        thread.join()
        print("ended")
    """
    assert ended(code).endswith("ended\n")


def machine_bytes() -> int | None:
    """Bytes that the machine has."""
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal"))
    except (OSError, StopIteration):
        return None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_child_that_was_forked_fits_and_transforms():
    pytest.importorskip("scipy")
    code = """
        import os, signal
        import numpy as np, scipy.sparse as sp, hbpca
        X = sp.random(5000, 300, 0.05, format="csr", random_state=0, dtype=np.float32)
        D = np.random.default_rng(0).normal(size=(4000, 200))
        def answer():
            sparse = hbpca.PCA(3, random_state=0).fit(X)
            dense = hbpca.PCA(3, random_state=0).fit(D)
            return np.concatenate([sparse.transform(X).ravel(), dense.transform(D).ravel(), [dense.score(D)]])
        want = answer()
        for generation in range(2):
            child = os.fork()
            if child:
                _, status = os.waitpid(child, 0)
                break
            signal.alarm(100)  # threads that are not there would be waited for without end
            if not np.array_equal(answer(), want):
                os._exit(1)
            status = 0
        if generation:
            os._exit(os.waitstatus_to_exitcode(status) if child else 0)
        print("child:", os.waitstatus_to_exitcode(status))
        """
    assert ended(code).strip() == "child: 0"
