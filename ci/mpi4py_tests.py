#!/usr/bin/env python3
"""`PCA(comm=MPI.COMM_WORLD)` on the ranks of a launcher: the same answer on each, and one clear error where a rank fails."""

import numpy as np
from mpi4py import MPI

from hbpca import PCA

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
assert size > 1, "start it under mpiexec"
X = np.random.default_rng(1).normal(size=(2000, 25)) * 0.8 ** np.arange(25) + 3
own = np.array_split(X, size)[rank]
alone = PCA(4).fit(X)
for solver in ("auto", "krylov", "anchored"):
    pca = PCA(4, solver=solver, comm=comm).fit(own)
    allowed = (alone.certificate_.residuals + pca.certificate_.residuals) * 2000 / 1999
    assert (np.abs(pca.explained_variance_ - alone.explained_variance_) <= allowed).all(), solver
    first = comm.bcast(pca.components_, root=0)
    assert (first == pca.components_).all(), solver
    assert pca.transform(own).shape == (len(own), 4)
own = own.copy()
if rank == size - 1:
    own[5, 2] = np.nan
try:
    PCA(2, comm=comm).fit(own)
except ValueError as error:
    said = str(error)
    assert "row 5, column 2" in said and (rank == size - 1 or f"rank {size - 1}" in said), said
else:
    raise AssertionError("NaN was taken")
if rank == 0:
    print(f"mpi4py: {size} ranks passed")
