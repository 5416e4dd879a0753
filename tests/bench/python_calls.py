#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs, beside ONNX Runtime: `make bench-python`. Needs the package rewire, numpy, onnx, onnxruntime.

Prints the best of several repeats, in microseconds. Each repeat takes turns, so that both meet the same machine. The call of an
empty program counts as a whole, so it is more than what Python adds to a call from C++.
"""

import threading
import time

import tiny_models as models
import numpy
import onnxruntime
import rewire

REPEATS = 15


def per_call(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls * 1e6


def best_in_turn(functions, calls):
    best = [float("inf")] * len(functions)
    for _ in range(REPEATS):
        for i, function in enumerate(functions):
            best[i] = min(best[i], per_call(function, calls))
    return best


def bound_call():
    """An empty program: what remains is the call."""
    vm = rewire.load(rewire.assemble(".func main(x: f32[4]) -> x: f32[4]\n  ret %x\n.end\n")).vm()
    vm.set_input("x", numpy.zeros(4, numpy.float32))
    return vm.invoke


def threads_against_one(count):
    """How many times as much `count` threads do as one thread, over one program."""
    program = rewire.load(models.slow(steps=4, size=384))
    x = numpy.zeros((384, 384), numpy.float32)

    def work():
        for _ in range(8):
            program(x)

    def timed(number):
        threads = [threading.Thread(target=work) for _ in range(number)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start

    work()
    return max(count * timed(1) / timed(count) for _ in range(5))


def main():
    empty, = best_in_turn([bound_call()], 20000)
    print(f"vm.invoke() of an empty program: {empty:.2f} us")
    proto = models.linear()[0]
    x = {"x": numpy.ones((4, 8), numpy.float32)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(models.data_of(proto), options, providers=["CPUExecutionProvider"])
    program, ours = rewire.load(proto), rewire.InferenceSession(models.data_of(proto))
    call, theirs, alike = best_in_turn(
        [lambda: program(x), lambda: session.run(None, x), lambda: ours.run(None, x)], 5000)
    print(f"small model: program({{...}}) {call:.2f} us, onnxruntime {theirs:.2f} us: {call / theirs:.2f} of its time; "
          f"rewire.InferenceSession {alike:.2f} us")
    print(f"2 threads over one program do {threads_against_one(2):.2f} times the work of one")


if __name__ == "__main__":
    main()
