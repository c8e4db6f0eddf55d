"""Fitting a memory map takes no second copy of it: hardly more memory than the command line's fit of the same file."""

import os
import subprocess
import sys

import command_line
import numpy as np
import pytest

GIGABYTES = 2

PROGRAM = """
import sys
import numpy as np
from hbpca import PCA

X = np.load(sys.argv[1], mmap_mode="r")
PCA(2).fit(X[:, : int(sys.argv[2])])
"""


def peak(*command):
    """Largest resident size of a program, in bytes: pages of the map that it touched, and its own."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return 1024 * used.ru_maxrss


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """Rows of 64 values, all but the first ones in a hole of the file, which takes room in memory but not on the disk."""
    path = tmp_path_factory.mktemp("map") / "x.npy"
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(GIGABYTES << 22, 64))
    X[:1000] = np.random.default_rng(0).standard_normal((1000, 64))
    X.flush()
    yield str(path)
    path.unlink()


@pytest.fixture(scope="module")
def needed_by_the_core(mapped):
    return peak(command_line.find(), "fit", mapped, "-k", "2")


@command_line.needed
@pytest.mark.skipif(sys.platform != "linux", reason="counts resident pages as Linux does")
@pytest.mark.parametrize("columns", [64, 48])
def test_a_memory_map_is_not_copied(mapped, needed_by_the_core, columns):
    assert needed_by_the_core > GIGABYTES << 30  # every page is looked at
    # The interpreter with all it imports is included.
    assert peak(sys.executable, "-c", PROGRAM, mapped, str(columns)) <= 1.1 * needed_by_the_core
