# SPDX-License-Identifier: Apache-2.0
"""What runs in each worker process of a measured job."""

import json
import os
import pathlib
import resource
import time

import numpy

WARM_BATCHES = 3
LONGEST_WAIT = 200  # seconds that a worker waits for the others


def proportional_bytes():
    for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/smaps_rollup has no Pss")


class Worker:
    """Runs batches in a worker process, and writes down what they took. One of it is in each process."""

    current = None

    @classmethod
    def of(cls, kind, folder, workers):
        if cls.current is None:
            cls.current = cls(kind, pathlib.Path(folder), workers)
        return cls.current

    def __init__(self, kind, folder, workers):
        self.folder, self.workers, self.batches, self.rows = folder, workers, 0, 0
        self.marks = folder / kind
        self.marks.mkdir(exist_ok=True)
        self.run = {"idle": lambda: lambda x: x[:, :8].astype(numpy.float32), "rewire": self.rewire, "onnxruntime": self.onnxruntime,
                    "onnxruntime_mapped": self.onnxruntime_mapped}[kind]()
        self.told, self.began = None, 0.0

    def rewire(self):
        from rewire_integrations import BatchModel

        model = BatchModel(self.folder / "model.rwx")
        return lambda x: model.run({"x": x})["y"]

    def onnxruntime(self, model="model.onnx", entries=()):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        for name, value in entries:
            options.add_session_config_entry(name, value)
        session = onnxruntime.InferenceSession(str(self.folder / model), options, providers=["CPUExecutionProvider"])
        return lambda x: session.run(["y"], {"x": x})[0]

    def onnxruntime_mapped(self):
        """It maps a file of weights, and keeps the mapping of those that no kernel packs."""
        return self.onnxruntime("mapped.onnx", [("session.disable_prepacking", "1")])

    def meet(self, name):
        """Waits until all workers are here."""
        (self.marks / f"{name}-{os.getpid()}").touch()
        end = time.monotonic() + LONGEST_WAIT
        while len(list(self.marks.glob(f"{name}-*"))) < self.workers and time.monotonic() < end:
            time.sleep(0.05)

    @staticmethod
    def cpu():
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    def __call__(self, x):
        y = self.run(x)
        self.batches += 1
        if self.batches == WARM_BATCHES:
            self.meet("ready")
            self.told = {"bytes": proportional_bytes(), "begin": 0.0, "end": 0.0, "rows": 0, "cpu": 0.0}
            self.meet("read")
            self.told["begin"], self.began = time.time(), self.cpu()
        elif self.told is not None:
            self.told.update(rows=self.told["rows"] + len(x), end=time.time(), cpu=self.cpu() - self.began)
        if self.told is not None:
            (self.marks / f"told-{os.getpid()}.json").write_text(json.dumps(self.told))
        return y
