"""On Spark in local mode with two processors: hbpca and MLlib on the same cached rows; sparse rows with more columns than
MLlib takes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from hbpca import PCA

from spread import arguments, in_turns, rounds_of, sine, told

#: As many as processors.
PARTITIONS = 2


def session():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{PARTITIONS}]").appName("spread").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.memory": "6g",
        "spark.driver.maxResultSize": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def dense(spark, X, leading, k, repeat) -> None:
    from pyspark.ml.feature import PCA as MLlibPCA
    from pyspark.ml.linalg import Vectors

    blocks = spark.sparkContext.parallelize(np.array_split(X, 8 * PARTITIONS), PARTITIONS).cache()
    vectors = blocks.flatMap(lambda block: [(Vectors.dense(row),) for row in block]).toDF(["features"]).cache()
    blocks.count(), vectors.count()

    def ours(rows):
        def fit():
            pca = PCA(k).fit(rows)
            return pca.components_, rounds_of(pca)

        return fit

    def mllib():
        model = MLlibPCA(k=k, inputCol="features", outputCol="scores").fit(vectors)
        return model.pc.toArray().T, "RowMatrix"

    peers = {"hbpca, DataFrame of vectors": ours(vectors), "hbpca, RDD of NumPy blocks": ours(blocks), "MLlib PCA": mllib}
    in_turns("Spark", peers, leading, repeat)
    vectors.unpersist(), blocks.unpersist()


def sparse(spark, S, k) -> None:
    """Once each: MLlib refuses at once."""
    from pyspark.ml.feature import PCA as MLlibPCA
    from pyspark.ml.linalg import Vectors

    engine = f"Spark, sparse {S.shape[0]} × {S.shape[1]}"
    blocks = spark.sparkContext.parallelize([S[i : i + 5000] for i in range(0, S.shape[0], 5000)], PARTITIONS).cache()
    blocks.count()
    start = time.perf_counter()
    pca = PCA(k).fit(blocks)
    seconds = time.perf_counter() - start
    # ARPACK's answer for the centred matrix, by products alone.
    mean = np.asarray(S.mean(axis=0)).ravel()
    ones = np.ones(S.shape[0])
    centred = sp.linalg.LinearOperator(
        S.shape,
        matvec=lambda v: S @ np.ravel(v) - (mean @ np.ravel(v)) * ones,
        rmatvec=lambda u: S.T @ np.ravel(u) - mean * np.ravel(u).sum(),
        dtype=float,
    )
    _, _, leading = sp.linalg.svds(centred, k, tol=1e-10, random_state=0)
    told(engine, "hbpca, RDD of SciPy blocks", seconds, sine(pca.components_, leading), rounds_of(pca))

    def vector(row):
        return (Vectors.sparse(row.shape[1], row.indices, row.data),)

    few = spark.sparkContext.parallelize([S[i] for i in range(200)], PARTITIONS).map(vector).toDF(["features"])
    try:
        MLlibPCA(k=k, inputCol="features", outputCol="scores").fit(few)
    except Exception as error:
        said = str(error).partition("IllegalArgumentException: ")[2] or str(error)
        told(engine, "MLlib PCA", None, None, said.splitlines()[0][:160])
    else:
        told(engine, "MLlib PCA", None, None, "took it")


def main() -> None:
    from spread import text

    given = arguments()
    folder, k, repeat = Path(next(given)), int(next(given)), int(next(given))
    rows, columns = int(next(given)), int(next(given))
    spark = session()
    try:
        dense(spark, np.load(folder / "x.npy"), np.load(folder / "leading.npy"), k, repeat)
        sparse(spark, text(rows, columns), k)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
