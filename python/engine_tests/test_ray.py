"""Datasets of Ray, on worker processes of this machine."""

import os
import signal
import subprocess
import threading
import time

import numpy as np
import pandas as pd
import pytest
import ray
from dense_answer import hold, rows

from hbpca import PCA


@pytest.fixture(scope="module", autouse=True)
def workers():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def frame():
    return pd.DataFrame(rows(), columns=[f"c{j}" for j in range(14)])


def in_blocks(X, count=5):
    return ray.data.from_numpy(np.array_split(X, count))


def in_order(scores):
    """Blocks may come in any order."""
    return scores[np.argsort(scores[:, 0])]


@pytest.mark.parametrize("solver", ["auto", "krylov", "covariance"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_vectors(solver, dtype):
    X = rows().astype(dtype)
    pca = PCA(4, solver=solver).fit(in_blocks(X))
    hold(pca, X.astype(float))
    assert pca.components_.dtype == dtype and not hasattr(pca, "feature_names_in_")


def test_columns_of_numbers_have_names():
    pca = PCA(3).fit(ray.data.from_pandas(frame()).repartition(4))
    hold(pca, rows())
    assert list(pca.feature_names_in_) == list(frame().columns)


def test_columns_of_whole_numbers_and_lists():
    X = np.round(rows(200) * 10)
    whole = pd.DataFrame(X.astype(int), columns=frame().columns)
    hold(PCA(3).fit(ray.data.from_pandas(whole).repartition(3)), X)
    hold(PCA(3).fit(ray.data.from_items([{"v": list(row)} for row in X], override_num_blocks=3)), X)


def test_the_same_bits_twice():
    data = in_blocks(rows(), 7)
    first, second = PCA(3, solver="krylov").fit(data), PCA(3, solver="krylov").fit(data)
    np.testing.assert_array_equal(first.components_, second.components_)


def test_empty_blocks_are_left_out_and_no_rows_are_refused():
    X = rows()
    kept = (
        ray.data.from_pandas(frame()).repartition(6).map_batches(lambda part: part[part["c0"] > 100.3], batch_format="pandas")
    )
    hold(PCA(3).fit(kept), X[X[:, 0] > 100.3])
    first = (
        ray.data.from_pandas(frame()).repartition(6).map_batches(lambda part: part[part["c0"] > 102.5], batch_format="pandas")
    )
    assert 0 < first.count() < 100
    PCA(1).fit(first)
    none = ray.data.from_pandas(frame()).map_batches(lambda part: part[part["c0"] > 1e9], batch_format="pandas")
    with pytest.raises(ValueError, match="0 sample"):
        PCA(1).fit(none)


def test_scores_are_lazy_and_those_of_memory():
    X, data = rows(), ray.data.from_pandas(frame()).repartition(4)
    pca = PCA(3).fit(data)
    scores = pca.transform(data)
    assert type(scores).__module__.startswith("ray.data")
    found = scores.to_pandas()
    assert list(found.columns) == list(pca.get_feature_names_out())
    np.testing.assert_allclose(in_order(found.to_numpy(dtype=float)), in_order(pca.transform(frame())), atol=1e-9)
    vectors = PCA(2).fit(in_blocks(X))
    found = np.concatenate([batch["data"] for batch in vectors.transform(in_blocks(X)).iter_batches(batch_format="numpy")])
    np.testing.assert_allclose(found, vectors.transform(X), atol=1e-9)
    with pytest.raises(ValueError, match="'z', which the fit had not"):
        pca.transform(ray.data.from_pandas(frame().rename(columns={"c3": "z"})))


def test_rows_that_are_made_at_random_are_made_once():
    rng = np.random.default_rng()
    data = in_blocks(rows()).map_batches(lambda batch: {"data": batch["data"] + rng.normal(size=batch["data"].shape)})
    assert PCA(3, solver="krylov").fit(data).outcome_ == "converged"


def test_what_is_wrong_with_a_block_arrives():
    X = rows()
    X[900, 3] = np.nan
    with pytest.raises(ValueError, match=r"^partition 2 \(counted from 0\): .*row 98, column 3"):
        PCA(2).fit(in_blocks(X))
    bad = frame()
    bad.loc[900, "c3"] = np.inf
    with pytest.raises(ValueError, match="partition 0 .*column 'c3'"):
        PCA(2).fit(ray.data.from_pandas(bad))
    with pytest.raises(ValueError, match="column 'word' is not of numbers: `select_columns`"):
        PCA(2).fit(ray.data.from_pandas(frame().assign(word="x")))

    def broken(batch):
        raise OSError("the disk of that worker")

    with pytest.raises(Exception, match="the disk of that worker"):
        PCA(2).fit(in_blocks(rows()).map_batches(broken))
    with pytest.raises(RuntimeError, match="partitions have 14 and 13 columns"):
        PCA(2).fit(ray.data.from_numpy([rows(), rows()[:, 1:]]))


def test_mini_batches_and_weights_are_refused():
    with pytest.raises(ValueError, match="choose krylov"):
        PCA(1, solver="vr-hb-power").fit(in_blocks(rows()))
    with pytest.raises(ValueError, match="sample_weight"):
        PCA(1).fit(in_blocks(rows()), sample_weight=np.ones(2003))


def answering():
    """Process ids of workers that compute an answer at this moment: Ray writes the task into the process's title."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [int(line.split()[0]) for line in listed if " ray::_answer" in line]


def test_a_worker_that_is_killed_in_a_round_is_replaced():
    X = rows(200_000, 60)
    killed, over = [], threading.Event()

    def kill():
        while not killed and not over.is_set():
            for pid in answering()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.001)

    thread = threading.Thread(target=kill)
    pca = PCA(3, solver="krylov", callback=lambda record: None if thread.ident else thread.start())
    try:
        pca.fit(in_blocks(X, 4))
    finally:
        over.set()
    thread.join()
    hold(pca, X)
    assert killed
