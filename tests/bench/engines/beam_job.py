# SPDX-License-Identifier: Apache-2.0
"""The measured job in Beam, by RunInference over batches."""

import apache_beam as beam
import numpy
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference
from apache_beam.options.pipeline_options import PipelineOptions
from worker import Worker


class Handler(ModelHandler):
    def __init__(self, *arguments):
        super().__init__()
        self.arguments = arguments

    def load_model(self):
        return Worker.of(*self.arguments)

    def run_inference(self, batch, model, inference_args=None):
        x, first = batch
        for place, row in enumerate(model(x)):
            yield PredictionResult(first + place, row)

    def get_num_bytes(self, batch):
        return batch[0].nbytes


class Read(beam.DoFn):
    """Rows of the file, from a mapping of it."""

    def __init__(self, path, batch):
        self.path, self.batch = path, batch

    def process(self, begin):
        yield numpy.load(self.path, mmap_mode="r")[begin:begin + self.batch], begin


class Keep(beam.DoFn):
    """Writes each result where the job finds it."""

    def __init__(self, folder):
        self.folder = folder

    def process(self, result):
        numpy.save(f"{self.folder}/y{result.example:06}.npy", result.inference)


def run(kind, folder, batch, workers):
    rows = len(numpy.load(folder / "x.npy", mmap_mode="r"))
    options = PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"])
    with beam.Pipeline(options=options) as pipeline:
        (pipeline | beam.Create(list(range(0, rows, batch))) | beam.Reshuffle() | beam.ParDo(Read(str(folder / "x.npy"), batch))
         | RunInference(Handler(kind, str(folder), workers).with_no_batching()) | beam.ParDo(Keep(str(folder / kind))))
    return numpy.stack([numpy.load(folder / kind / f"y{row:06}.npy") for row in range(rows)])
