"""The command `hbpca` that the package installs: the program's own code, with its exit codes, streams and signals."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import command_line
import numpy as np
import pytest

import hbpca

COMMAND = str(Path(sys.executable).with_name("hbpca.exe" if os.name == "nt" else "hbpca"))


def run(folder, *words, **options):
    return subprocess.run([COMMAND, *words], cwd=folder, capture_output=True, text=True, check=False, **options)


def test_it_says_its_version(tmp_path):
    assert run(tmp_path, "--version").stdout == f"hbpca {hbpca.__version__}\n"
    module = subprocess.run([sys.executable, "-m", "hbpca", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout == f"hbpca {hbpca.__version__}\n"


def test_it_fits_what_it_ships(tmp_path):
    assert run(tmp_path, "sample", "digits.csv").returncode == 0
    fitted = run(tmp_path, "fit", "digits.csv", "--label-column", "digit", "-k", "3", "--json", "-o", "m.safetensors")
    assert fitted.returncode == 0, fitted.stderr
    pca = hbpca.load(tmp_path / "m.safetensors")
    assert np.array_equal(pca.certificate_.eigenvalues, json.loads(fitted.stdout)["eigenvalues"])


@pytest.mark.parametrize(
    "words, code",
    [
        (["fit"], 2),
        (["fit", "x.csv", "-k", "0"], 2),
        (["fit", "none.csv"], 3),
        (["fit", "bad.csv", "--json"], 3),
        (["fit", "x.csv", "--solver", "power", "--max-passes", "2", "-k", "1"], 1),
        (["info", "x.csv"], 0),
        (["--help"], 0),
    ],
)
@command_line.needed
def test_it_ends_as_the_program_does(tmp_path, words, code):
    rows = np.random.default_rng(3).normal(size=(50, 4)) * [4, 3.9, 3.8, 1]
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",", header="a,b,c,d", comments="")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3,x\n")
    here = run(tmp_path, *words)
    there = subprocess.run([command_line.find(), *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert here.returncode == there.returncode == code, here.stderr

    def without_seconds(text):
        return re.sub(r"[\d.]+ (µs|ms|s)\b", "# s", text)

    assert without_seconds(here.stdout) == without_seconds(there.stdout)
    assert without_seconds(here.stderr) == without_seconds(there.stderr)


def test_names_that_are_no_utf8_arrive(tmp_path):
    if os.name == "nt":
        pytest.skip("names are UTF-16 there")
    name = b"x\xff.csv"
    (Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))).write_text("a,b\n1,2\n3,5\n0,1\n")
    assert run(tmp_path, "fit", os.fsdecode(name), "-q").returncode == 0


def test_a_pipe_that_is_closed_early_is_no_failure(tmp_path):
    command = subprocess.Popen([COMMAND, "man"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    command.stdout.close()
    assert command.stderr.read() == b""
    assert command.wait() == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it_with_what_was_reached(tmp_path, sent, code):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(20_000, 200)))
    words = ["fit", "x.npy", "-k", "1", "--solver", "power", "--tol", "0", "--max-passes", "1e9", "--trace", "t.jsonl"]
    command = subprocess.Popen(
        [COMMAND, *words, "-v", "-o", "m.safetensors"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # It reads, says so, and then multiplies for as long as it is let.
    assert "read x.npy" in command.stderr.readline()
    time.sleep(0.5)
    command.send_signal(sent)
    _, said = command.communicate(timeout=60)
    assert command.returncode == code, said
    assert hbpca.load(tmp_path / "m.safetensors").outcome_ == "interrupted"
