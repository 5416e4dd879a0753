# SPDX-License-Identifier: Apache-2.0
"""VirtualMachine: what stays bound; kernels in Python; text assembly; parameters."""

import sys

import tiny_models as models
import numpy
import pytest
import rewire


def test_bound_inputs_and_outputs():
    vm = rewire.load(models.add()).vm()
    a, b = numpy.ones((2, 4), numpy.float32), numpy.ones((2, 4), numpy.float32)
    mine = numpy.zeros((2, 4), numpy.float32)
    vm.set_input("a", a)
    vm.set_input(1, b)
    vm.set_output("sum", mine)
    vm.require_zero_copy()
    vm.invoke()
    assert (mine == 2).all()
    a[...] = 3  # read when it runs
    vm.invoke("main", timeout=10)
    assert (mine == 4).all()
    assert vm.output_report("sum") == (False, "")
    assert vm.outputs()["sum"].ctypes.data == mine.ctypes.data
    vm.set_output("sum", None)
    vm.invoke()
    assert vm.output(0).ctypes.data != mine.ctypes.data
    vm.set_input("a", a, copy=True)
    a[...] = 100
    vm.invoke()
    assert (vm.output("sum") == 4).all()
    assert 0 < vm.bytes_held <= vm.bytes_peak
    vm.trim()
    vm.clear_inputs()
    with pytest.raises(rewire.InvalidArgumentError):
        vm.invoke()


def test_a_capacity_is_memory_of_many_runs():
    vm, memory = rewire.load(models.add()).vm(), numpy.zeros(4096, numpy.uint8)
    vm.set_output("sum", rewire.Capacity(memory))
    for count in (1, 3, 2):
        for name in "ab":
            vm.set_input(name, numpy.full((count, 4), count, numpy.float32))
        vm.invoke()
        for made in (vm.output("sum"), vm.outputs()["sum"]):
            assert made.shape == (count, 4) and made.ctypes.data == memory.ctypes.data and (made == 2 * count).all()
    # The last result lies in it, also when it is no longer bound, and keeps it alive.
    references = sys.getrefcount(memory)
    vm.set_output("sum", None)
    made = vm.output("sum")
    vm.invoke()
    assert made.ctypes.data == memory.ctypes.data and (made == 4).all() and vm.output("sum").ctypes.data != memory.ctypes.data
    assert sys.getrefcount(memory) == references  # of `made`, in place of the machine's
    del made
    assert sys.getrefcount(memory) < references
    for given, words in [(numpy.zeros(8, numpy.uint8), "sum"), (numpy.zeros((64, 64), numpy.uint8)[:, ::2], "must be contiguous")]:
        with pytest.raises(rewire.Error, match=words):
            vm.set_output("sum", rewire.Capacity(given))
            vm.invoke()


def test_mistakes_of_bindings():
    vm = rewire.load(models.add()).vm()
    frozen = numpy.zeros((2, 4), numpy.float32)
    frozen.flags.writeable = False
    for call, words in [
        (lambda: vm.set_input("c", frozen), 'no input named "c"; the inputs: a, b'),
        (lambda: vm.set_input("a", frozen.astype("i4")), "i32"),
        (lambda: vm.set_output("sum", frozen), "read-only"),
        (lambda: vm.set_output("sum", numpy.zeros((2, 5), numpy.float32)), "sum"),
        (lambda: vm.output("sum"), "."),
    ]:
        with pytest.raises(rewire.Error, match=words):
            call()
    vm.set_input("a", frozen)
    vm.set_input("b", frozen)
    vm.donate("a", "sum")
    with pytest.raises(rewire.InvalidArgumentError, match="donated input a is not a tensor that may be written"):
        vm.invoke()
    assert (frozen == 0).all()
    vm.set_input("a", frozen, copy=True)
    vm.invoke()


def test_donated_memory_is_the_output():
    vm = rewire.load(models.add((4,))).vm()
    state = numpy.zeros(4, numpy.float32)
    vm.set_input("a", state)
    vm.set_input("b", numpy.ones(4, numpy.float32))
    vm.donate("a", "sum")
    for _ in range(3):
        vm.invoke()
    assert (state == 3).all()
    frozen = state.copy()
    frozen.flags.writeable = False
    vm.set_input("a", frozen)
    with pytest.raises(rewire.InvalidArgumentError, match="donated"):
        vm.invoke()
    assert (frozen == 3).all()


def test_a_state_goes_to_another_machine(tmp_path):
    program = rewire.load(models.add((4,)))
    vm, state = program.vm(), numpy.zeros(4, numpy.float32)
    vm.set_input("a", state)
    vm.set_input("b", numpy.ones(4, numpy.float32))
    vm.donate("a", "sum")
    vm.invoke()
    kept = vm.state()
    vm.save_state(tmp_path / "sum.state")
    assert (tmp_path / "sum.state").read_bytes() == kept
    vm.invoke()
    again = program.vm()
    assert again.load_state(tmp_path / "sum.state") == "main" and again.state() == kept
    again.invoke()
    assert (again.output("sum") == state).all() and (state == 2).all()
    assert vm.set_state(kept) == "main" and vm.state() == kept
    with pytest.raises(rewire.InvalidFileError, match="cut off"):
        vm.set_state(kept[:-1])
    with pytest.raises(rewire.InvalidArgumentError, match="the state is of another executable"):
        rewire.load(models.add((5,))).vm().set_state(kept)
    with pytest.raises(TypeError, match="bytes expected"):
        vm.set_state("state")


SCALE = """
.kernel scale = "mine.scale"
.func main(x: f32[2, 2]) -> y: f32[2, 2]
  %storage = alloc_storage _, alignment=64, f32[2, 2], cpu
  %y = alloc_tensor %storage, _, f32[2, 2]
  invoke_packed scale(%x, %y), outputs=1
  ret %y
.end
"""


def test_assembly_goes_both_ways():
    executable = rewire.assemble(SCALE)
    text = rewire.disassemble(executable)
    assert "mine.scale" in text
    assert rewire.assemble(text).to_bytes() == executable.to_bytes()
    assert executable.functions == ["main"] and executable.kernels == ["mine.scale"]
    with pytest.raises(rewire.InvalidArgumentError, match="%x is read, but nothing writes it"):
        rewire.assemble(".func main() -> f32[4]\n  ret %x\n.end\n")


WEIGHTED = """
.param w: f32[4]
.kernel add = "rewire.add"
.func main(x: f32[4]) -> y: f32[4]
  %w = load_const w
  %storage = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %storage, _, f32[4]
  invoke_packed add(%x, %w, %y), outputs=1
  ret %y
.end
"""


def test_parameters():
    executable = rewire.assemble(WEIGHTED)
    one = numpy.ones(4, numpy.float32)
    with pytest.raises(rewire.LinkError, match="w"):
        rewire.load(executable)
    program = rewire.load(executable, parameters={"w": one})
    assert str(program.parameters[0]) == "w: f32[4]"
    assert (program(one)["y"] == 2).all()
    other = program.with_parameters({"w": 4 * one})
    assert (other(one)["y"] == 5).all() and (program(one)["y"] == 2).all()
    kept = rewire.ParameterSet.from_program(other)
    assert kept.names() == ["w"] and "w" in kept and len(kept) == 1
    assert kept["w"][0] == 4
    with pytest.raises(ValueError):
        kept["w"][0] = 1
    with pytest.raises(KeyError):
        kept["v"]


def test_parameters_of_files(tmp_path):
    import json
    import struct

    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    file = tmp_path / "w.safetensors"
    file.write_bytes(struct.pack("<Q", len(header)) + header + numpy.arange(4, dtype=numpy.float32).tobytes())
    x = numpy.ones(4, numpy.float32)
    for given in (file, rewire.ParameterSet.from_safetensors(file), [str(file)]):
        assert rewire.load(rewire.assemble(WEIGHTED), parameters=given)(x)["y"][3] == 4
    with pytest.raises(rewire.NotFoundError):
        rewire.ParameterSet.from_file(tmp_path / "none")


def test_integers_and_tuples():
    program = rewire.load(rewire.assemble("""
.func main(x: f32[2]) -> value
  %one = load_consti 1
  %pair = alloc_adt tag=3 (%x, %one)
  ret %pair
.end
"""))
    x = numpy.ones(2, numpy.float32)
    pair = next(iter(program(x).values()))
    assert (pair.tag, len(pair), pair[1]) == (3, 2, 1) and pair[-2][0] == 1
    with pytest.raises(IndexError):
        pair[2]
    assert repr(rewire.Adt(7, [x, 2])) == "rewire.Adt(tag=7, 2 fields)"


def test_a_set_of_parameters_is_checked_when_asked(tmp_path):
    path = tmp_path / "weights.rwx"
    made = rewire.assemble(".const w: f32[4] = {1, 2, 3, 5.5}\n.func main() -> y: f32[4]\n  %y = load_const w\n  ret %y\n.end\n")
    weight = numpy.float32(5.5).tobytes()
    content = made.to_bytes()
    path.write_bytes(content)
    assert rewire.ParameterSet.from_file(path, verify=True)["w"][3] == 5.5
    path.write_bytes(content.replace(weight, numpy.float32(5.25).tobytes()))
    assert rewire.ParameterSet.from_file(path)["w"][3] == 5.25
    program = rewire.assemble(".param w: f32[4]\n.func main() -> y: f32[4]\n  %y = load_const w\n  ret %y\n.end\n")
    assert rewire.load(program, parameters=path)()["y"][3] == 5.25
    for taken in (lambda: rewire.ParameterSet.from_file(path, verify=True),
                  lambda: rewire.load(program, parameters=path, verify=True),
                  lambda: rewire.load(program, parameters=[path], verify=True)):
        with pytest.raises(rewire.InvalidFileError, match="is damaged"):
            taken()


def test_what_takes_other_things_says_what_to_give(tmp_path):
    path = tmp_path / "a.npz"
    numpy.savez(path, w=numpy.ones(3, numpy.float32))
    with pytest.raises(rewire.UnsupportedError, match=r"from_arrays\(dict\(numpy.load\("):
        rewire.ParameterSet.from_file(path)
    with pytest.raises(FileNotFoundError):
        rewire.ParameterSet.from_file(tmp_path / "none.npz")
