# SPDX-License-Identifier: Apache-2.0
"""The measured job without an engine: processes that take batches in turn, from memory. What an engine adds is the difference."""

import multiprocessing

import numpy
from worker import Worker


def work(kind, folder, batch, workers, place):
    """Every batch whose number is `place` by the number of workers. Writes the results of each."""
    x = numpy.load(folder / "x.npy")
    for begin in range(place * batch, len(x), workers * batch):
        numpy.save(folder / kind / f"y{begin:06}.npy", Worker.of(kind, folder, workers)(x[begin:begin + batch]))


def run(kind, folder, batch, workers):
    processes = multiprocessing.get_context("spawn")
    started = [processes.Process(target=work, args=(kind, folder, batch, workers, place)) for place in range(workers)]
    for each in started:
        each.start()
    for each in started:
        each.join()
        if each.exitcode != 0:
            raise RuntimeError(f"a worker ended with {each.exitcode}")
    return numpy.concatenate([numpy.load(path) for path in sorted((folder / kind).glob("y*.npy"))])
