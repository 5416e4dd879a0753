# SPDX-License-Identifier: Apache-2.0
"""Calls as people write them: one array for one output, memory that is larger than the result, wrong arguments, pickles,
event loops."""

import asyncio
import pickle
import subprocess
import sys
import threading

import numpy
import onnx
import pytest
import rewire
import tiny_models as models
from running_scene import Scene
from test_second_thread import TABLE, public_names

# Words of the binding, which would mean nothing to whoever reads them.
FOREIGN = ("incompatible function arguments", "std::", "nanobind", "bad_cast", "Invoked with types")


def add():
    return rewire.load(models.add())


def ones(count=2, value=1):
    return numpy.full((count, 4), value, numpy.float32)


def relu():
    return rewire.load(models.model([onnx.helper.make_node("Relu", ["x"], ["y"])], [("x", 1, ("N", 4))], [("y", 1, ("N", 4))]))


def calls_of(scene, owner):
    """Everything public that one can call of a class or module, on the scene's object of it."""
    objects = {rewire.VirtualMachine: scene.vm, rewire.Program: scene.program, rewire.Executable: scene.executable,
               rewire.ParameterSet: scene.weights, rewire.Tensor: scene.tensor, rewire.Adt: scene.adt, rewire: rewire,
               rewire.OrtValue: scene.value}
    for name in public_names(owner):
        if name == "__init__":
            yield name, owner
        # Python itself calls the other special methods, with the right number of arguments.
        elif callable(getattr(owner, name)) and name in (name.strip("_"), "__call__", "__dlpack__"):
            yield name, getattr(objects[owner], name)


@pytest.mark.parametrize("owner", [rewire.VirtualMachine, rewire.Program, rewire.Executable, rewire.ParameterSet, rewire.Tensor,
                                   rewire.Adt, rewire], ids=lambda owner: owner.__name__)
@pytest.mark.parametrize("value", [None, object(), "a", -1, 3.5, b"\x00", {"N": "a"}, [object()], "\udcff"],
                         ids=lambda value: type(value).__name__)
def test_wrong_arguments_are_told_in_words_of_the_package(owner, value, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    scene = Scene(monkeypatch, tmp_path)
    seen = 0
    for name, call in calls_of(scene, owner):
        if name in ("bind_input", "bind_output", "set_seed"):
            continue
        for args, named in [((), {}), ((value,), {}), ((value, value), {}), ((value,) * 9, {}), ((), {"no_such": value})]:
            try:
                call(*args, **named)
            except Exception as error:
                seen += 1
                assert not any(word in str(error) for word in FOREIGN), (name, args, named, str(error))
    assert seen


@pytest.mark.parametrize("call, error, words", [
    (lambda p: p.vm().set_input("a"), TypeError, r"set_input\(\) misses argument 'value'"),
    (lambda p: p.vm().invoke(tmeout=3), TypeError, r"invoke\(\) has no argument 'tmeout'; did you mean 'timeout'"),
    (lambda p: p.vm().invoke("main", 1, 2), TypeError, "takes at most 2 arguments by place, 3 were given"),
    (lambda p: p.vm().invoke("main", function="main"), TypeError, "by place and by name"),
    (lambda p: p.vm().invoke(timeout="soon"), rewire.InvalidArgumentError, "timeout: a number expected, 'soon' given"),
    (lambda p: p.vm().output(-1), rewire.InvalidArgumentError, "output: an integer of at least 0 expected, -1 given"),
    (lambda p: p(aa=ones(), b=ones()), rewire.InvalidArgumentError, "no input 'aa'; did you mean 'a'"),
    (lambda p: rewire.load(p.executable, threads="2"), rewire.InvalidArgumentError, "threads: an integer expected, '2' given"),
    (lambda p: rewire.load(models.add(), dims={"N": "a"}), rewire.InvalidArgumentError, r"dims\['N'\]: an integer expected"),
    (lambda p: rewire.load(None), rewire.InvalidArgumentError, "model: a path, bytes, .* expected, None given"),
    (lambda p: p.run("ab"), rewire.InvalidArgumentError, "inputs: a dict by name, an array, or a list of arrays expected"),
    (lambda p: p.inputs_of("mian"), rewire.NotFoundError, "'mian'; did you mean 'main'"),
    (lambda p: rewire.compile(models.add(), disable_passes="tiny"), rewire.InvalidArgumentError, "a list of str expected"),
    (lambda p: rewire.compile(models.add(), precision="bf61"), rewire.InvalidArgumentError, "did you mean 'bf16'"),
])
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call(add())


def test_one_array_for_the_only_output():
    program, mine = add(), numpy.zeros((2, 4), numpy.float32)
    assert program.run([ones(), ones()], out=mine)["sum"] is mine and (mine == 2).all()
    assert program.run([ones(), ones()], out=[mine])["sum"] is mine
    x = numpy.array([[-1, 2, -3, 4]], numpy.float32)
    assert relu().run(x, out=mine[:1])["y"][0, 1] == 2 and mine[0, 0] == 0  # one input, too
    two = rewire.load(models.model([onnx.helper.make_node("Relu", ["x"], ["y"]), onnx.helper.make_node("Neg", ["x"], ["z"])],
                                   [("x", 1, (2,))], [("y", 1, (2,)), ("z", 1, (2,))]))
    with pytest.raises(rewire.InvalidArgumentError, match="one array is given for 2 outputs; give a dict by name, of these: y, z"):
        two.run(numpy.ones(2, numpy.float32), out=numpy.ones(2, numpy.float32))


def test_a_capacity_is_memory_for_an_output_of_any_size():
    program, memory = add(), numpy.zeros(4096, numpy.uint8)
    for count in (1, 3, 2):
        made = program.run([ones(count), ones(count)], out=rewire.Capacity(memory))["sum"]
        assert made.shape == (count, 4) and made.ctypes.data == memory.ctypes.data and (made == 2).all()
    del memory
    assert (made == 2).all()  # which keeps the memory alive
    with pytest.raises(rewire.Error, match="sum"):
        program.run([ones(300), ones(300)], out={"sum": rewire.Capacity(numpy.zeros(64, numpy.uint8))})
    with pytest.raises(rewire.InvalidArgumentError, match="must be contiguous"):
        program.run([ones(), ones()], out=rewire.Capacity(numpy.zeros((8, 8), numpy.uint8)[:, ::2]))
    assert (program(ones(), ones())["sum"] == 2).all()


def test_missing_files_are_the_builtin_error(tmp_path):
    none = tmp_path / "none.rwx"
    for call in [lambda: rewire.load(none), lambda: rewire.load(tmp_path / "none.onnx"), lambda: rewire.compile(tmp_path / "none.onnx"),
                 lambda: rewire.ParameterSet.from_file(none), lambda: rewire.load(models.add(), parameters=none),
                 lambda: rewire.load(models.add(), name_map=none), lambda: rewire.load(models.add(), kernels=["./none.so"])]:
        with pytest.raises(FileNotFoundError, match="none") as raised:
            call()
        assert isinstance(raised.value, rewire.NotFoundError) and raised.value.errno == 2 and raised.value.code == 2
    with pytest.raises(rewire.NotFoundError) as raised:
        add().inputs_of("none")
    assert not isinstance(raised.value, OSError)


def test_element_types_are_numpys():
    described = add().inputs[0]
    assert described.dtype == numpy.float32 and described.element_type == "f32"
    assert numpy.zeros((1, 4), described.dtype).dtype == numpy.float32
    assert rewire.TensorInfo("x", "bf16[1]", "bf16", (1,)).dtype == "bfloat16"
    assert rewire.TensorInfo("x", "integer", None, None).dtype is None


def test_notebooks_show_a_program():
    shown = add()._repr_html_()
    assert shown.startswith("<table ") and "f32[N, 4]" in shown and "sum" in shown


@rewire.kernel("host.twice")
def twice(x, out):
    out[...] = 2 * x


def test_a_program_is_pickled_by_its_path(tmp_path):
    rewire.compile(models.add(), tmp_path / "add.rwx")
    program = rewire.load(tmp_path / "add.rwx", threads=2)
    again = pickle.loads(pickle.dumps(program))
    assert isinstance(again, rewire.Program) and (again(ones(), ones())["sum"] == 2).all()
    assert pickle.loads(pickle.dumps(twice)) is twice  # a kernel goes by its name
    other = subprocess.run([sys.executable, "-c", "import pickle, sys; print(pickle.load(sys.stdin.buffer))"],
                           input=pickle.dumps(program), capture_output=True, check=True)
    assert b"<rewire.Program (a: f32[N, 4]" in other.stdout
    for unknown in (add(), program.with_parameters()):
        with pytest.raises(TypeError, match="load it from a file"):
            pickle.dumps(unknown)
    (tmp_path / "add.rwx").unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(program))


def test_event_loops():
    program, mine = add(), numpy.zeros((2, 4), numpy.float32)

    async def work():
        many = await asyncio.gather(*[program.run_async([ones(), ones(value=i)]) for i in range(8)])
        assert [each["sum"][0, 0] for each in many] == [1 + i for i in range(8)]
        assert (await program.run_async([ones(), ones()], out=mine))["sum"] is mine
        with pytest.raises(rewire.InvalidArgumentError, match="is missing"):
            await program.run_async([ones()])
        with pytest.raises(rewire.StepLimitError):
            await program.run_async([ones(), ones()], max_steps=1)

    asyncio.run(work())


ENDLESS = """
.kernel tick = "host.tick"
.func main(x: f32[4]) -> y: f32[4]
again:
  invoke_packed tick(%x), outputs=0
  %one = load_consti 1
  if %one == %one goto again else again
  ret %x
.end
"""


def test_a_cancelled_task_ends_its_run():
    began, runs = threading.Event(), []

    def tick(x):
        runs.append(1)
        began.set()

    program = rewire.load(rewire.assemble(ENDLESS), kernels={"host.tick": tick})

    async def work():
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(program.run_async(numpy.ones(4, numpy.float32)))
        await loop.run_in_executor(None, began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ended = len(runs)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(program.run_async(numpy.ones(4, numpy.float32)), 0.05)
        return ended

    ended = asyncio.run(work())
    assert 0 < ended <= len(runs)
    # Nothing runs any more: the next call has a machine, and no tick comes without one.
    before = len(runs)
    with pytest.raises(rewire.StepLimitError):
        program.run(numpy.ones(4, numpy.float32), max_steps=30)
    assert len(runs) - before < 30


def test_every_class_of_the_table_is_called():
    assert {rewire.VirtualMachine, rewire.Program, rewire.Executable, rewire.ParameterSet, rewire.Tensor, rewire.Adt} <= set(TABLE)


def test_weights_are_checked_when_asked(tmp_path):
    made = rewire.compile(models.linear()[0]).executable.to_bytes()
    weight = numpy.float32(-1).tobytes()  # the first of the linear model's
    at = made.rindex(weight)
    changed = made[:at] + numpy.float32(-2).tobytes() + made[at + 4:]
    (tmp_path / "changed.rwx").write_bytes(changed)
    for model in (changed, tmp_path / "changed.rwx"):
        rewire.load(model)
        with pytest.raises(rewire.InvalidFileError, match="is damaged"):
            rewire.load(model, verify=True)
    rewire.load(made, verify=True)
