# SPDX-License-Identifier: Apache-2.0
"""The measured job in Ray Data."""

import numpy
import pyarrow
import pyarrow.parquet
import ray
from rewire_integrations import columns
from worker import Worker


class Score:
    """The class for map_batches."""

    def __init__(self, *arguments):
        self.worker = Worker.of(*arguments)

    def __call__(self, table):
        y = self.worker(columns.rows_of("x", table.column("x")))
        return pyarrow.table({"id": table.column("id"), "y": columns.as_arrow(y)})


def run(kind, folder, batch, workers):
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=1_000_000_000, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    table = pyarrow.parquet.read_table(folder / "rows.parquet")
    rows = -(-len(table) // (4 * workers))  # of a block, so that each worker gets several
    data = ray.data.from_arrow([table.slice(begin, rows) for begin in range(0, len(table), rows)])
    scored = data.map_batches(Score, fn_constructor_args=(kind, str(folder), workers), batch_format="pyarrow", batch_size=batch,
                              concurrency=workers, num_cpus=1 / workers)
    found = {row["id"]: row["y"] for row in scored.iter_rows()}
    ray.shutdown()
    return numpy.array([found[number] for number in sorted(found)])
