"""Rows that a scheduler owns: Dask in this process and on workers, and the protocol itself."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

from hbpca import PCA, _hbpca
from hbpca._input import rows_of
from hbpca._partitions import answer

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


def rows(n=503, d=14):
    return np.random.default_rng(1).normal(size=(n, d)) * 0.8 ** np.arange(d) + 100


def close(pca, X, **settings):
    """Within the certificates of both."""
    want = PCA(pca.n_components_, **settings).fit(X)
    n = X.shape[0]
    allowed = (want.certificate_.residuals + pca.certificate_.residuals) * n / (n - 1)
    assert pca.outcome_ == "converged" and pca.n_samples_ == X.shape[0]
    assert (np.abs(want.explained_variance_ - pca.explained_variance_) <= allowed + 1e-15).all()


@pytest.mark.parametrize("solver", ["auto", "krylov", "covariance", "anchored"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_dask_arrays(solver, dtype):
    X = rows().astype(dtype)
    pca = PCA(4, solver=solver).fit(da.from_array(X, chunks=(97, 5)))
    close(pca, X, solver=solver)
    assert pca.components_.dtype == dtype


def test_sparse_chunks_stay_sparse():
    X = sp.random(400, 30, 0.1, format="csr", random_state=1)
    parts = [da.from_delayed(dask.delayed(X[i : i + 100]), (100, 30), meta=sp.csr_matrix((0, 0))) for i in range(0, 400, 100)]
    pca = PCA(3, center=False).fit(da.concatenate(parts))
    close(pca, X, center=False)


def test_unknown_chunk_sizes_and_empty_chunks():
    X = rows()
    kept = da.from_array(X, chunks=(100, 14))
    kept = kept[kept[:, 0] > 100.5]
    assert np.isnan(kept.shape[0])
    close(PCA(3).fit(kept), X[X[:, 0] > 100.5])
    pca = PCA(3).fit(da.concatenate([da.from_array(X[:0], chunks=(1, 14)), da.from_array(X, chunks=(100, 14))]))
    close(pca, X)
    with pytest.raises(ValueError, match="0 sample"):
        PCA().fit(da.from_array(X[:0], chunks=(1, 14)))


def test_frames_have_names_and_lazy_scores():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows(), columns=[f"c{j}" for j in range(14)])
    lazy = dd.from_pandas(frame, npartitions=4)
    pca = PCA(3).fit(lazy)
    close(pca, frame.to_numpy())
    assert list(pca.feature_names_in_) == list(frame.columns)
    scores = pca.transform(lazy)
    assert type(scores).__module__.startswith("dask")
    np.testing.assert_allclose(scores.compute().to_numpy(), pca.transform(frame))


def test_scores_of_arrays_are_lazy():
    X = rows()
    lazy = da.from_array(X, chunks=(97, 5))
    pca = PCA(3).fit(lazy)
    scores = pca.transform(lazy)
    assert isinstance(scores, da.Array) and scores.shape == (503, 3)
    np.testing.assert_array_equal(scores.compute(), pca.transform(X))


def test_rows_that_change_between_rounds_are_named():
    count = iter(range(1000))
    lock = threading.Lock()

    def different(block):
        with lock:
            return block + next(count)

    X = da.from_array(rows(), chunks=(503, 14)).map_blocks(different, meta=np.empty((0, 0)))
    with pytest.raises(RuntimeError, match=r"partition 0 .* other rows than in the first round.*persist"):
        PCA(2, solver="krylov").fit(X)


def test_what_a_partition_raises_arrives():
    def broken(block):
        raise OSError("the disk of that worker")

    X = da.from_array(rows(), chunks=(100, 14)).map_blocks(broken, meta=np.empty((0, 0)))
    with pytest.raises(OSError, match="the disk of that worker"):
        PCA(2).fit(X)
    bad = rows()
    bad[120, 3] = np.inf
    with pytest.raises(ValueError, match="row 20, column 3"):
        PCA(2).fit(da.from_array(bad, chunks=(100, 14)))


def test_mini_batches_and_weights_are_refused():
    X = da.from_array(rows(), chunks=(100, 14))
    with pytest.raises(ValueError, match="choose krylov"):
        PCA(1, solver="vr-hb-power").fit(X)
    with pytest.raises(ValueError, match="sample_weight"):
        PCA(1).fit(X, sample_weight=np.ones(503))


def test_the_protocol_itself():
    X = rows()
    parts = [X[:200], X[200:201], X[201:]]

    class Here:
        count = 3

        def sum(self, task):
            answers = [answer(part, task, i, 3) for i, part in enumerate(parts)]
            return _hbpca.combine_answers(_hbpca.combine_answers(answers[0], answers[1]), answers[2])

    fitted = _hbpca.fit_partitions(Here(), X.shape, 0.1, PCA(3)._settings(), n_components=3)
    np.testing.assert_allclose(fitted.eigenvalues, PCA(3, tol=1e-12).fit(X).explained_variance_ * 502 / 503, rtol=1e-6)
    with pytest.raises(RuntimeError, match="a task that is none"):
        _hbpca.partition_answer(rows_of(X), np.array([7.0]), 0, 1)


def test_a_worker_that_is_killed_is_replaced():
    distributed = pytest.importorskip("distributed")
    X = rows(6000, 40)

    def slowly(block):
        time.sleep(0.05)
        return block

    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        lazy = da.from_array(X, chunks=(500, 40)).map_blocks(slowly, meta=np.empty((0, 0)))
        pids = list(client.run(os.getpid).values())
        killed = []

        def kill(record):
            if not killed:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

        pca = PCA(3, solver="krylov", callback=kill).fit(lazy)
        close(pca, X)
        assert killed
