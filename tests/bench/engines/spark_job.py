# SPDX-License-Identifier: Apache-2.0
"""The measured job in Spark, by mapInArrow."""

import os
import sys

import numpy
import pyarrow
from pyspark.sql import SparkSession
from rewire_integrations import columns
from worker import Worker


class Score:
    """The function of mapInArrow."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __call__(self, batches):
        for each in batches:
            y = Worker.of(*self.arguments)(columns.rows_of("x", each.column("x")))
            yield pyarrow.record_batch({"id": each.column("id"), "y": columns.as_arrow(y, lists=True)})


def run(kind, folder, batch, workers):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
             .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch)).config("spark.driver.memory", "2g")
             .config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate())
    frame = spark.read.parquet(str(folder / "rows.parquet")).repartition(workers)
    found = {row.id: row.y for row in frame.mapInArrow(Score(kind, str(folder), workers), "id long, y array<float>").collect()}
    spark.stop()
    return numpy.array([found[number] for number in sorted(found)], dtype=numpy.float32)
