"""Rows on the ranks of a communicator, such as mpi4py's: every rank fits its own rows with those of all others."""

from __future__ import annotations

import numpy as np

from hbpca import _hbpca


def agreed(comm, work):
    """What `work` returns; or, on every rank, the error of the first one that it failed on, so that nobody waits for it."""
    own = error = None
    try:
        own = work()
    except Exception as raised:  # every rank says it, below
        error = raised
    failed = gathered(comm, float(error is not None))
    if not failed.any():
        return own
    first = int(np.argmax(failed))
    said = shared_bytes(comm, str(error).encode() if comm.Get_rank() == first else b"", root=first)
    if error is not None and comm.Get_rank() == first:
        raise error
    raise ValueError(f"rank {first}: {said.decode()}")


def gathered(comm, number: float) -> np.ndarray:
    """Everyone's number, on every rank."""
    rank, size = comm.Get_rank(), comm.Get_size()
    numbers = np.zeros(size)
    numbers[rank] = number
    if rank > 0:
        comm.Send(numbers[rank : rank + 1].copy(), 0)
    else:
        for other in range(1, size):
            received = np.zeros(1)
            comm.Recv(received, other)
            numbers[other] = received[0]
    comm.Bcast(numbers, 0)
    return numbers


def shared_bytes(comm, own: bytes, *, root: int = 0) -> bytes:
    """The bytes of one rank, on every rank."""
    length = np.array([float(len(own))])
    comm.Bcast(length, root)
    buffer = np.zeros(int(length[0]), dtype=np.uint8)
    if comm.Get_rank() == root:
        buffer[:] = np.frombuffer(own, dtype=np.uint8)
    comm.Bcast(buffer, root)
    return buffer.tobytes()


def fit_on_ranks(comm, rows, n_rows, n_columns, settings, **choices):
    """The fit of all ranks' rows, on every rank; `rows` are one's own."""
    counts, columns = gathered(comm, n_rows), gathered(comm, n_columns)
    if (columns != columns[0]).any():
        rank = int(np.argmax(columns != columns[0]))
        raise ValueError(f"rank {rank}: {columns[rank]:.0f} features where rank 0 has {columns[0]:.0f}")
    shape = (int(counts.sum()), int(columns[0]))
    fitted = _hbpca.fit_on_ranks(rows, shape, comm, settings, **choices)
    own = b"" if fitted is None else fitted.to_bytes()
    sent = shared_bytes(comm, own)
    return _hbpca.Fitted.from_bytes(sent) if fitted is None else fitted


def refuse_other_names(comm, names):
    """Refuses frames whose columns are not those of rank 0: rows would be added up in another order without a word."""
    own = "" if names is None else "\n".join(map(str, names))
    first = shared_bytes(comm, own.encode()).decode()

    def compared():
        if own != first:
            raise ValueError("its feature names, or their order, are not those of rank 0")

    agreed(comm, compared)
