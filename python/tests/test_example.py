"""The example prints what it says it prints, and the guide's code runs."""

import contextlib
import doctest
import io
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import hbpca._pca
import hbpca.theory

PYTHON = Path(__file__).resolve().parents[1]
GUIDES = [PYTHON.parent / "docs" / "guide" / name for name in ("python.md", "missing-values.md")]
BLOCKS = [
    (f"{guide.name}, block {number}", block)
    for guide in GUIDES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL))
]


def test_the_example_prints_what_it_says():
    source = PYTHON / "examples" / "digits.py"
    said = [line[2:].strip() for line in source.read_text().splitlines() if line.startswith("#:")]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(source))
    assert out.getvalue().splitlines() == said
    assert all(said)


@pytest.mark.parametrize("module", [hbpca._pca, hbpca.theory])
def test_docstrings(module):
    failed, attempted = doctest.testmod(module)
    assert failed == 0 < attempted


@pytest.mark.parametrize("name, block", BLOCKS)
def test_the_code_of_the_guide_runs(name, block, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30)) * 0.8 ** np.arange(30)
    monkeypatch.chdir(tmp_path)
    np.save("measurements.npy", X)
    import matplotlib
    import scipy.sparse

    matplotlib.use("Agg")
    S = scipy.sparse.random_array((400, 30), density=0.2, rng=rng, format="csr")
    exec(compile(block, name, "exec"), {"X": X, "S": S, "y": np.arange(400) % 2})
