"""Rows on several ranks: a communicator of threads, with the methods that mpi4py's have."""

import queue
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from hbpca import PCA


class Thread:
    """One of several ranks in one process."""

    def __init__(self, rank, mail):
        self.rank, self.mail = rank, mail

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return len(self.mail)

    def Send(self, buffer, dest):
        self.mail[dest][self.rank].put(np.array(buffer))

    def Recv(self, buffer, source):
        buffer[:] = self.mail[self.rank][source].get(timeout=60)

    def Bcast(self, buffer, root):
        if self.rank == root:
            for dest in range(len(self.mail)):
                if dest != root:
                    self.Send(buffer, dest)
        else:
            self.Recv(buffer, root)

    def __deepcopy__(self, memo):
        return self


def on_ranks(size, work):
    """What `work(comm)` returns, or raises, on each rank."""
    mail = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    results = [None] * size

    def run(rank):
        try:
            results[rank] = work(Thread(rank, mail))
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    return results


def matrix(kind):
    X = np.random.default_rng(1).normal(size=(301, 12)) * 0.7 ** np.arange(12) + 5
    if kind == "sparse":
        return sp.random(301, 12, 0.3, format="csr", random_state=1)
    return X.astype(kind)


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
@pytest.mark.parametrize("solver", ["auto", "krylov", "anchored"])
def test_every_rank_ends_with_the_components_of_all_rows(kind, solver):
    X = matrix(kind)
    alone = PCA(3, solver=solver).fit(X)

    def work(comm):
        cuts = [0, 100, 101, 301]
        own = X[cuts[comm.Get_rank()] : cuts[comm.Get_rank() + 1]]
        pca = PCA(3, solver=solver, comm=comm).fit(own)
        return pca, pca.transform(own)

    results = on_ranks(3, work)
    for pca, scores in results:
        assert pca.n_samples_ == 301 and pca.outcome_ == "converged" and scores.shape[1] == 3
        allowed = np.add(alone.certificate_.residuals, pca.certificate_.residuals) * 301 / 300 + 1e-6 * (kind == "float32")
        assert (np.abs(pca.explained_variance_ - alone.explained_variance_) <= allowed).all()
        np.testing.assert_array_equal(pca.components_, results[0][0].components_)


def test_weights_are_those_of_all_ranks():
    X, weights = matrix("float64"), np.random.default_rng(2).integers(0, 4, 301).astype(float)
    want = PCA(2, tol=1e-12).fit(np.repeat(X, weights.astype(int), axis=0))

    def work(comm):
        own = slice(comm.Get_rank() * 150, 301 if comm.Get_rank() else 150)
        return PCA(2, tol=1e-12, comm=comm).fit(X[own], sample_weight=weights[own])

    for pca in on_ranks(2, work):
        np.testing.assert_allclose(pca.explained_variance_, want.explained_variance_, rtol=1e-10)


def test_the_failure_of_one_rank_is_everyones():
    X = matrix("float64")

    def of(bad):
        def work(comm):
            return PCA(2, comm=comm).fit(bad if comm.Get_rank() == 1 else X)

        return [str(error) for error in on_ranks(3, work)]

    nan = X.copy()
    nan[7, 3] = np.nan
    for said in (of(nan), of(X[:, :5]), of(np.zeros(3)), of("rows.npy")):
        assert "rank 1: " in said[0] and "rank 1: " in said[2], said
    assert "row 7, column 3" in of(nan)[0]
    assert "5 features where rank 0 has 12" in of(X[:, :5])[0]


def test_frames_in_another_order_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(matrix("float64"), columns=[f"c{j}" for j in range(12)])

    def work(comm):
        own = frame if comm.Get_rank() == 0 else frame[frame.columns[::-1]]
        return PCA(2, comm=comm).fit(own)

    assert all("are not those of rank 0" in str(error) for error in on_ranks(2, work))
    named = on_ranks(2, lambda comm: PCA(2, comm=comm).fit(frame))
    assert list(named[1].feature_names_in_) == list(frame.columns)


def test_none_takes_all_components_of_all_rows():
    X = np.random.default_rng(3).normal(size=(8, 6))
    pcas = on_ranks(2, lambda comm: PCA(comm=comm).fit(X[comm.Get_rank() * 4 : comm.Get_rank() * 4 + 4]))
    assert [pca.n_components_ for pca in pcas] == [6, 6]


def test_columns_beyond_any_memory_are_a_memory_error():
    X = sp.csr_matrix((np.ones(3), np.array([0, 5, 2**31 - 2]), np.array([0, 2, 3])), shape=(2, 2**31 - 1))
    first, second = on_ranks(2, lambda comm: PCA(1, comm=comm).fit(X))
    assert isinstance(first, MemoryError) and "not enough memory" in str(first), first
    assert "rank 0: not enough memory" in str(second), second
