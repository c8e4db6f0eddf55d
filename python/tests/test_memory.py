"""Fitting a memory map or a large array takes no second copy of it."""

import subprocess
import sys

import numpy as np
import pytest

MEGABYTES = 256

PROGRAM = """
import sys
import numpy as np
from hbpca import PCA

def resident(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what)) * 1024

X = np.memmap(sys.argv[1], dtype=np.float32, mode="r").reshape(-1, 64)
if sys.argv[2] == "sliced":
    X = X[:, :48]
PCA(2).fit(X[:1000])  # what the first fit loads once
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = resident("VmRSS:")
PCA(2).fit(X)
print(resident("VmHWM:") - before, resident("RssAnon:"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("layout", ["whole", "sliced"])
def test_a_memory_map_is_not_copied(tmp_path, layout):
    rng = np.random.default_rng(0)
    with open(tmp_path / "x", "wb") as out:
        for _ in range(MEGABYTES // 16):
            out.write(rng.standard_normal(4 << 20, dtype=np.float32).tobytes())
    size = MEGABYTES << 20
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "x"), layout], capture_output=True, text=True, check=True
    )
    grown, anonymous = map(int, done.stdout.split())
    # The pages of the map itself count as resident; nothing near its size comes on top.
    assert grown < 1.1 * size, f"{grown / 2**20:.0f} MB more for a map of {MEGABYTES} MB"
    assert anonymous < size / 2, f"{anonymous / 2**20:.0f} MB of private memory"
