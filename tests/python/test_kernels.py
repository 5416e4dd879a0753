# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python: what they get, what they may write and keep, how they fail."""

import gc
import threading

import numpy
import pytest
import rewire

SCALE = """
.kernel scale = "mine.scale"
.func main(x: f32[2, 2]) -> y: f32[2, 2]
  %storage = alloc_storage _, alignment=64, f32[2, 2], cpu
  %y = alloc_tensor %storage, _, f32[2, 2]
  invoke_packed scale(%x, %y), outputs=1
  ret %y
.end
"""

# An input, a constant, an intermediate tensor and a view of the input are read.
READS = """
.const c: f32[4] = {1, 2, 3, 4}
.const flat: i64[1] = {4}
.kernel copy = "rewire.copy"
.kernel see = "mine.see"
.func main(x: f32[2, 2]) -> y: f32[4]
  %c = load_const c
  %flat = load_const flat
  %view = reshape_tensor %x, %flat
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %made = alloc_tensor %s, _, f32[4]
  invoke_packed copy(%c, %made), outputs=1
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %t, _, f32[4]
  invoke_packed see(%x, %c, %view, %made, %y), outputs=1
  ret %y
.end
"""

RETURNS = """
.kernel give = "mine.give"
.kernel spoil = "mine.spoil"
.func main(x: f32[4]) -> value
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %made = alloc_tensor %s, _, f32[4]
  invoke_packed spoil(%x, %made), outputs=1
  %given = invoke_packed give(%made), outputs=0
  invoke_packed spoil(%given, %made), outputs=1
  ret %given
.end
"""


def square(first=0):
    return numpy.arange(first, first + 4, dtype=numpy.float32).reshape(2, 2)


def load(scale):
    return rewire.load(rewire.assemble(SCALE), kernels={"mine.scale": scale})


def test_a_python_function_is_a_kernel():
    @rewire.kernel("mine.scale")
    def scale(x, out):
        """Twice."""
        out[...] = 2 * x

    x = square()
    numpy.testing.assert_array_equal(rewire.load(rewire.assemble(SCALE), kernels=[scale])(x)["y"], 2 * x)
    assert scale.__doc__ == "Twice." and repr(scale) == "rewire.kernel('mine.scale')"
    numpy.testing.assert_array_equal(load(scale.function)(x)["y"], 2 * x)
    with pytest.raises(rewire.LinkError, match="mine.scale"):
        rewire.load(rewire.assemble(SCALE))


def test_only_what_the_import_declares_can_be_written():
    seen = []

    def see(*tensors):
        seen[:] = [each.flags.writeable for each in tensors]
        for each in tensors[:-1]:
            with pytest.raises(ValueError):
                each[...] = 0
            with pytest.raises(ValueError):
                each.flags.writeable = True
            with pytest.raises(ValueError):
                numpy.from_dlpack(each)[...] = 0
        tensors[-1][...] = tensors[0].reshape(4)

    program = rewire.load(rewire.assemble(READS), kernels={"mine.see": see})
    x = square()
    numpy.testing.assert_array_equal(program(x)["y"], x.reshape(4))
    assert seen == [False, False, False, False, True]
    mine = numpy.zeros(4, numpy.float32)
    program.run([x], out={"y": mine})
    numpy.testing.assert_array_equal(mine, x.reshape(4))


KEEPERS = {
    "the array": lambda x: x,
    "a view": lambda x: x[1:],
    "a reshaped view": lambda x: x.reshape(4),
    "the buffer": memoryview,
    "a capsule": lambda x: x.__dlpack__(max_version=(1, 0)),
    "what took a capsule over": lambda x: numpy.from_dlpack(x),
    "a tensor": rewire.tensor,
    "a generator": lambda x: (each for each in x),
}


@pytest.mark.parametrize("way", KEEPERS)
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_kept_after_the_call_is_an_error_and_keeps_its_values(way, place):
    kept = []

    def keep(x, out):
        out[...] = 2 * x
        if not kept:
            kept.append(KEEPERS[way]((x, out)[place]))

    program = load(keep)
    with pytest.raises(rewire.KernelError, match=f"BufferError: the function keeps its argument {place}, f32") as raised:
        program(square())
    assert isinstance(raised.value.__cause__, BufferError)
    before = numpy.array(kept[0]).tobytes() if isinstance(kept[0], (numpy.ndarray, memoryview)) else None
    del raised
    for first in range(5):  # the memory is not used again
        numpy.testing.assert_array_equal(program(square(first))["y"], 2 * square(first))
    del program
    if before is not None:
        assert numpy.array(kept[0]).tobytes() == before


def test_copies_may_be_kept_and_so_may_cycles_that_nobody_holds():
    kept = []

    def careful(x, out):
        kept.append((x.copy(), numpy.from_dlpack(x, copy=True)))
        cycle = [x, out]
        cycle.append(cycle)
        try:
            raise ValueError("kept by its own frame")
        except ValueError as error:
            loop = error
        out[...] = 2 * x

    program = load(careful)
    gc.disable()
    try:
        for first in range(3):
            numpy.testing.assert_array_equal(program(square(first))["y"], 2 * square(first))
    finally:
        gc.enable()
    for first, pair in enumerate(kept):
        for each in pair:
            numpy.testing.assert_array_equal(each, square(first))


def test_an_output_that_a_kernel_keeps_does_not_dangle():
    kept = []

    def keep(x, out):
        out[...] = 2 * x
        kept.append(out)

    program = load(keep)
    with pytest.raises(rewire.KernelError, match="argument 1"):
        program.run([square()], out={"y": numpy.zeros((2, 2), numpy.float32)})
    vm = program.vm()
    vm.set_input("x", square(1))
    vm.set_output("y", numpy.zeros((2, 2), numpy.float32))
    with pytest.raises(rewire.KernelError, match="argument 1"):
        vm.invoke()
    del vm, program
    gc.collect()
    for first, each in enumerate(kept):
        numpy.testing.assert_array_equal(each, 2 * square(first))


GIVERS = {
    "the argument": (lambda x: x, lambda x: x),
    "a view": (lambda x: x[1:], lambda x: x[1:]),
    "a strided view": (lambda x: x[::-2], lambda x: x[::-2]),
    "a tensor": (rewire.tensor, lambda x: x),
    "an array of its own": (lambda x: x + 1, lambda x: x + 1),
    "a number": (lambda x: 2.5, lambda x: numpy.float64(2.5)),
}


@pytest.mark.parametrize("way", GIVERS)
def test_a_result_never_lies_in_an_argument(way):
    give, expected = GIVERS[way]
    calls = []

    def spoil(given, made):
        made[...] = -7 if calls else numpy.arange(4)
        calls.append(0)

    program = rewire.load(rewire.assemble(RETURNS), kernels={"mine.give": give, "mine.spoil": spoil})
    result = next(iter(program(numpy.zeros(4, numpy.float32)).values()))
    numpy.testing.assert_array_equal(result, expected(numpy.arange(4, dtype=numpy.float32)))


def test_an_exception_in_a_kernel_is_the_cause():
    def fail(x, out):
        raise ZeroDivisionError("by zero")

    with pytest.raises(rewire.KernelError, match="ZeroDivisionError: by zero") as raised:
        load(fail)(square())
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    # Its traceback has the frame, and that the arrays.
    frame = raised.value.__cause__.__traceback__.tb_next
    while frame is not None and "x" not in frame.tb_frame.f_locals:
        frame = frame.tb_next
    if frame is not None:
        numpy.testing.assert_array_equal(frame.tb_frame.f_locals["x"], square())

    def interrupt(x, out):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(interrupt)(square())


def test_a_kernel_runs_on_the_thread_of_its_run_and_on_several_at_once():
    both, seen = threading.Barrier(2, timeout=60), []

    def meet(x, out):
        both.wait()  # for the run of the other thread, which needs the GIL
        seen.append(threading.get_ident())
        out[...] = x

    program = load(meet)
    threads = [threading.Thread(target=program, args=(square(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(thread.ident for thread in threads)
