"""RDDs and DataFrames of Spark, in local mode with two Python workers."""

import os
import signal
import subprocess

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dense_answer import hold, rows
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from hbpca import PCA


@pytest.fixture(scope="module")
def spark():
    session = (
        SparkSession.builder.master("local[2,4]")  # a task may fail three times
        .appName("hbpca")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def frame(spark, X):
    return spark.createDataFrame(pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])).repartition(4)


def stored(spark):
    return spark.sparkContext._jsc.getPersistentRDDs()


@pytest.mark.parametrize("solver", ["auto", "krylov", "covariance"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_of_numpy(spark, solver, dtype):
    X = rows().astype(dtype)
    pca = PCA(4, solver=solver).fit(spark.sparkContext.parallelize(list(X), 5))
    hold(pca, X.astype(float))
    assert pca.components_.dtype == dtype
    assert len(stored(spark)) == 0


@pytest.mark.parametrize("kind", ["list", "tuple", "dense", "matrices"])
def test_rows_of_other_kinds(spark, kind):
    X = rows(300)
    made = {
        "list": [list(map(float, row)) for row in X],
        "tuple": [tuple(map(float, row)) for row in X],
        "dense": [Vectors.dense(row) for row in X],
        "matrices": np.array_split(X, 11),
    }
    hold(PCA(3).fit(spark.sparkContext.parallelize(made[kind], 3)), X)


@pytest.mark.parametrize("kind", ["scipy", "sparse", "mixed", "matrices"])
def test_sparse_rows(spark, kind):
    S = sp.random(400, 30, 0.2, format="csr", random_state=1)
    X = S.toarray()

    def vector(i):
        row = S[i]
        return Vectors.sparse(30, row.indices, row.data) if kind == "sparse" or i % 2 else Vectors.dense(X[i])

    made = {
        "scipy": [S[i] for i in range(400)] if kind == "scipy" else [],
        "matrices": [S[i : i + 37] for i in range(0, 400, 37)],
    }
    given = made.get(kind) or [vector(i) for i in range(400)]
    pca = PCA(3, solver="krylov").fit(spark.sparkContext.parallelize(given, 4))
    hold(pca, X)


def test_partitions_that_are_sparse_and_dense_are_made_alike(spark):
    S = sp.random(400, 30, 0.2, format="csr", random_state=1)
    X = S.toarray()
    sparse = [Vectors.sparse(30, S[i].indices, S[i].data) for i in range(200)]
    dense = [Vectors.dense(row) for row in X[200:]]
    context = spark.sparkContext
    hold(PCA(3, solver="krylov").fit(context.parallelize(sparse, 2).union(context.parallelize(dense, 2))), X)
    assert len(stored(spark)) == 0


def test_frames_of_numbers_have_names(spark):
    X = rows()
    data = frame(spark, X)
    pca = PCA(3).fit(data)
    hold(pca, X)
    assert list(pca.feature_names_in_) == data.columns


def test_frames_of_vectors(spark):
    X = rows() - 100
    X[np.abs(X) < 0.3] = 0  # some rows are shorter as sparse vectors, some as dense ones
    data = frame(spark, X)
    vectors = VectorAssembler(inputCols=data.columns, outputCol="features").transform(data).select("features")
    pca = PCA(3).fit(vectors)
    hold(pca, X)
    assert not hasattr(pca, "feature_names_in_")
    from pyspark.ml.functions import vector_to_array

    hold(PCA(3).fit(vectors.select(vector_to_array("features").alias("features"))), X)


def test_the_same_bits_twice_over_two_levels_of_sums(spark):
    X = rows()
    data = spark.sparkContext.parallelize(list(X), 20)
    first, second = PCA(3, solver="krylov").fit(data), PCA(3, solver="krylov").fit(data)
    hold(first, X)
    np.testing.assert_array_equal(first.components_, second.components_)


def test_empty_partitions_are_left_out_and_no_rows_are_refused(spark):
    X = rows()
    data = spark.sparkContext.parallelize(list(X), 5)
    only = data.mapPartitionsWithIndex(lambda index, part: part if index in (0, 3) else [])
    hold(PCA(3).fit(only), np.array(only.collect()))
    with pytest.raises(ValueError, match="0 sample"):
        PCA(3).fit(data.filter(lambda row: False))
    with pytest.raises(ValueError, match="0 sample"):
        PCA(3).fit(frame(spark, X).filter("c0 > 1e9"))


def test_scores_are_lazy_and_those_of_memory(spark):
    X = rows()
    data = spark.sparkContext.parallelize(list(X), 5)
    pca = PCA(3).fit(data)
    scores = pca.transform(data)
    assert type(scores).__module__.startswith("pyspark")
    np.testing.assert_allclose(np.array(scores.collect()), pca.transform(X), atol=1e-9)
    tables = frame(spark, X)
    named = PCA(3).fit(tables)
    scores = named.transform(tables)
    assert scores.columns == list(named.get_feature_names_out())
    found = np.array([list(row) for row in scores.collect()])
    given = pd.DataFrame([list(row) for row in tables.collect()], columns=tables.columns)
    np.testing.assert_allclose(found, named.transform(given), atol=1e-9)
    with pytest.raises(ValueError, match="'z', which the fit had not"):
        named.transform(tables.withColumnRenamed("c3", "z"))


def test_a_partition_that_is_made_anew_with_other_rows_is_named(spark):
    context = spark.sparkContext

    def at_random(index, part):
        generator = np.random.default_rng(0 if index == 0 else None)
        return (row + generator.normal(size=row.shape) for row in part)

    data = context.parallelize(list(rows()), 3).mapPartitionsWithIndex(at_random)
    # What Spark stores is what every round sees …
    assert PCA(2, solver="krylov").fit(data).outcome_ == "converged"

    # … until it loses that.
    def lose(record):
        for rdd in stored(spark).values():
            rdd.unpersist(True)

    with pytest.raises(RuntimeError, match=r"partition 1 \(counted from 0\) has other rows than in the first round"):
        PCA(2, solver="krylov", callback=lose).fit(data)
    # Rows that are made the same way every time may be lost.
    hold(PCA(2, solver="krylov", callback=lose).fit(context.parallelize(list(rows()), 3)), rows())


def test_what_is_wrong_with_a_partition_arrives(spark):
    context = spark.sparkContext
    X = rows()
    X[900, 3] = np.nan
    with pytest.raises(ValueError, match=r"^partition 2 \(counted from 0\): row 100, column 3"):
        PCA(2).fit(context.parallelize(list(X[:2000]), 5))
    with pytest.raises(ValueError, match="partition .*column 'c3'"):
        PCA(2).fit(frame(spark, rows()).selectExpr("*").replace(float(rows()[7, 3]), None, subset=["c3"]))
    with pytest.raises(RuntimeError, match="partitions have 14 and 13 columns"):
        PCA(2).fit(context.parallelize([*rows()[:10], *rows()[:10, 1:]], 2))
    with pytest.raises(ValueError, match=r"partition 0 .*: row 10 has 13 numbers where row 0 has 14"):
        PCA(2).fit(context.parallelize([*rows()[:10], *rows()[:10, 1:]], 1))
    with pytest.raises(ValueError, match="column 'word' is of type string, not of numbers: `select`"):
        PCA(2).fit(frame(spark, rows()).selectExpr("*", "'x' as word"))
    with pytest.raises(ValueError, match="could not convert string to float"):
        PCA(2).fit(context.parallelize([["a", "b"], ["c", "d"]], 1))
    assert len(stored(spark)) == 0


def test_mini_batches_and_weights_are_refused(spark):
    data = spark.sparkContext.parallelize(list(rows()), 5)
    with pytest.raises(ValueError, match="choose krylov"):
        PCA(1, solver="vr-hb-power").fit(data)
    with pytest.raises(ValueError, match="sample_weight"):
        PCA(1).fit(data, sample_weight=np.ones(2003))


def python_workers():
    """Process ids of Spark's Python workers, which are children of one daemon."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], check=True, capture_output=True, text=True).stdout.splitlines()
    found = {
        int(line.split()[0]): int(line.split()[1]) for line in listed if "pyspark.daemon" in line or "pyspark/daemon" in line
    }
    return [pid for pid, parent in found.items() if parent in found]


def test_workers_that_are_killed_are_replaced(spark):
    X, killed = rows(), []

    def kill(record):
        if not killed:
            killed.extend(python_workers())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    pca = PCA(3, solver="krylov", callback=kill).fit(spark.sparkContext.parallelize(list(X), 4))
    hold(pca, X)
    assert killed


def test_connect_is_refused():
    class DataFrame:
        """A frame of Spark Connect, as far as it is looked at."""

        columns, dtypes = ("a",), (("a", "double"),)

        @property
        def rdd(self):
            raise AttributeError("JVM_ATTRIBUTE_NOT_SUPPORTED")

    DataFrame.__module__ = "pyspark.sql.connect.dataframe"
    with pytest.raises(TypeError, match="pyspark.sql.connect.dataframe.DataFrame has no RDD, as over Spark Connect"):
        PCA(1).fit(DataFrame())
