# SPDX-License-Identifier: Apache-2.0
"""Everything public is called while a run goes on, by another thread and by a kernel of the run: the machine that runs
raises BusyError and is unchanged, and all else answers as it does at any time.

TABLE has a row for each public name. A name without a row fails the test, and so does a row without a name.
"""

import asyncio
import dataclasses
import enum
import inspect
import tempfile
import threading
import warnings

import numpy
import onnx
import pytest
import rewire
import rewire.backend
import rewire.tvm
import tiny_models as models
from running_scene import PROGRAM, W, X, Y, Scene

def is_y(result):
    result = list(result.values())[0] if isinstance(result, dict) else result
    return numpy.array_equal(numpy.asarray(result), Y)


def first_is_y(result):
    return is_y(result[0])


def is_x(result):
    return numpy.array_equal(numpy.asarray(result), X)


def nothing(result):
    return result is None


def is_a(kind):
    return lambda result: isinstance(result, kind)


def equals(value):
    return lambda result: result == value


def names(*expected):
    return lambda result: tuple(each.name for each in result) == expected


def cannot_be_made(owner):
    """Whether only functions of the package make such an object."""
    with pytest.raises(TypeError):
        owner()
    return True


def warned(call):
    """A call that warns of a setting without an effect. Warnings are of the process, so nothing is caught of them here."""
    def quiet(scene):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(scene)
    return quiet


def by_callback(scene):
    answer, given = threading.Event(), []
    scene.session.run_async(None, {"x": X}, lambda results, data, error: (given.extend(results), answer.set()))
    # The kernel of the run gets the GIL for it while this thread waits.
    assert answer.wait(10)
    return given


def other_machine(scene):
    """A machine of the same program that does not run."""
    machine = rewire.VirtualMachine(scene.program)
    machine.set_input("x", W)
    return machine


def with_state_file(call):
    """A call that is given a file with a state."""
    def run(scene):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x.state"
            other_machine(scene).save_state(path)
            return call(scene, path)
    return run


BUSY = "BusyError"
CANCELS = "the run ends"
ADDRESS = {"element_type": numpy.float32, "shape": (4,)}


def at(array):
    return {**ADDRESS, "buffer_ptr": array.ctypes.data}


# For each class: how its run begins, and for each name a call and what that gives.
def is_a_library_or_told():
    """Whether the library is there, or else its error says so."""
    try:
        return rewire.onnxruntime_library().endswith("libonnxruntime.so.1")
    except rewire.Error as error:
        return "was built without REWIRE_WITH_ONNXRUNTIME_API" in str(error)


def is_told_that_nobody_listens():
    """Whether connecting where no server listens is the documented error."""
    try:
        rewire.connect("http://127.0.0.1:1/none", timeout=5)
    except rewire.IoError:
        return True
    return False


TABLE = {
    rewire.VirtualMachine: (Scene.by_machine, {
        "__init__": (lambda s: rewire.VirtualMachine(s.program), is_a(rewire.VirtualMachine)),
        "bytes_held": (lambda s: s.vm.bytes_held, is_a(int)),
        "bytes_peak": (lambda s: s.vm.bytes_peak, is_a(int)),
        "cancel": (lambda s: s.vm.cancel(), CANCELS),
        "clear_inputs": (lambda s: s.vm.clear_inputs(), BUSY),
        "clear_outputs": (lambda s: s.vm.clear_outputs(), BUSY),
        "donate": (lambda s: s.vm.donate("x", "y"), BUSY),
        "invoke": (lambda s: s.vm.invoke(timeout=1), BUSY),
        "load_state": (with_state_file(lambda s, path: s.vm.load_state(path)), BUSY),
        "output": (lambda s: s.vm.output("y"), BUSY),
        "output_report": (lambda s: s.vm.output_report("y"), BUSY),
        "outputs": (lambda s: s.vm.outputs(), BUSY),
        "require_zero_copy": (lambda s: s.vm.require_zero_copy(), BUSY),
        "save_state": (with_state_file(lambda s, path: s.vm.save_state(path)), BUSY),
        "set_input": (lambda s: s.vm.set_input("x", W), BUSY),
        "set_limits": (lambda s: s.vm.set_limits(steps=1), BUSY),
        "set_output": (lambda s: s.vm.set_output("y", numpy.zeros(4, numpy.float32)), BUSY),
        "set_state": (lambda s: s.vm.set_state(other_machine(s).state()), BUSY),
        "state": (lambda s: s.vm.state(), BUSY),
        "trim": (lambda s: s.vm.trim(), BUSY),
    }),
    rewire.tvm.VirtualMachine: (Scene.by_tvm, {
        "__init__": (lambda s: rewire.tvm.VirtualMachine(s.program), is_a(rewire.tvm.VirtualMachine)),
        "NAIVE_ALLOCATOR": (lambda s: s.tvm.NAIVE_ALLOCATOR, equals(1)),
        "POOLED_ALLOCATOR": (lambda s: s.tvm.POOLED_ALLOCATOR, equals(2)),
        "benchmark": (lambda s: s.tvm.benchmark(repeat=1, number=1), BUSY),
        "get_input_index": (lambda s: s.tvm.get_input_index("x"), equals(0)),
        "get_outputs": (lambda s: s.tvm.get_outputs("main"), BUSY),
        "invoke": (lambda s: s.tvm.invoke("main"), BUSY),
        "invoke_stateful": (lambda s: s.tvm.invoke_stateful("main"), BUSY),
        "invoke_with_outputs": (lambda s: s.tvm.invoke_with_outputs("main", [W], [W.copy()]), BUSY),
        "run": (lambda s: s.tvm.run(), BUSY),
        "set_input": (lambda s: s.tvm.set_input("main", W), BUSY),
        "set_one_input": (lambda s: s.tvm.set_one_input("main", "x", W), BUSY),
        "set_outputs": (lambda s: s.tvm.set_outputs("main", W.copy()), BUSY),
    }),
    rewire.IOBinding: (Scene.by_binding, {
        "__init__": (lambda s: rewire.IOBinding(s.session), is_a(rewire.IOBinding)),
        "bind_cpu_input": (lambda s: s.binding.bind_cpu_input("x", W), BUSY),
        "bind_input": (lambda s: s.binding.bind_input("x", **at(W)), BUSY),
        "bind_ortvalue_input": (lambda s: s.binding.bind_ortvalue_input("x", s.value), BUSY),
        "bind_ortvalue_output": (lambda s: s.binding.bind_ortvalue_output("y", rewire.OrtValue(W.copy())), BUSY),
        "bind_output": (lambda s: s.binding.bind_output("y", **at(W)), BUSY),
        "clear_binding_inputs": (lambda s: s.binding.clear_binding_inputs(), BUSY),
        "clear_binding_outputs": (lambda s: s.binding.clear_binding_outputs(), BUSY),
        "copy_outputs_to_cpu": (lambda s: s.binding.copy_outputs_to_cpu(), BUSY),
        "get_outputs": (lambda s: s.binding.get_outputs(), BUSY),
        "synchronize_inputs": (lambda s: s.binding.synchronize_inputs(), nothing),
        "synchronize_outputs": (lambda s: s.binding.synchronize_outputs(), nothing),
    }),
    rewire.InferenceSession: (Scene.by_binding, {
        "__init__": (lambda s: rewire.InferenceSession(s.model), is_a(rewire.InferenceSession)),
        "get_inputs": (lambda s: s.session.get_inputs(), names("x")),
        "disable_fallback": (lambda s: s.session.disable_fallback(), nothing),
        "enable_fallback": (warned(lambda s: s.session.enable_fallback()), nothing),
        "end_profiling": (warned(lambda s: s.session.end_profiling()), equals("")),
        "get_modelmeta": (lambda s: s.session.get_modelmeta().graph_name, equals("g")),
        "get_outputs": (lambda s: s.session.get_outputs(), names("y")),
        "get_overridable_initializers": (lambda s: s.session.get_overridable_initializers(), equals([])),
        "get_profiling_start_time_ns": (lambda s: s.session.get_profiling_start_time_ns(), equals(0)),
        "get_provider_options": (lambda s: s.session.get_provider_options(), equals({"CPUExecutionProvider": {}})),
        "get_providers": (lambda s: s.session.get_providers(), equals(["CPUExecutionProvider"])),
        "get_session_options": (lambda s: s.session.get_session_options(), is_a(rewire.SessionOptions)),
        "io_binding": (lambda s: s.session.io_binding(), is_a(rewire.IOBinding)),
        "run": (lambda s: s.session.run(None, {"x": X}), first_is_y),
        "run_async": (by_callback, first_is_y),
        "run_with_iobinding": (lambda s: s.session.run_with_iobinding(s.binding), BUSY),
        "run_with_ort_values": (lambda s: s.session.run_with_ort_values(["y"], {"x": s.value})[0].numpy(), is_y),
        "set_providers": (lambda s: s.session.set_providers(["CPUExecutionProvider"]), nothing),
    }),
    rewire.Program: (Scene.by_call, {
        "__call__": (lambda s: s.program(X), is_y),
        "__init__": (lambda s: rewire.Program(s.executable, kernels=[("host.gate", s.gate)], parameters=[s.weights]),
                     is_a(rewire.Program)),
        "__repr__": (lambda s: repr(s.program), equals("<rewire.Program (x: f32[4]) -> (y: f32[4])>")),
        "executable": (lambda s: s.program.executable, is_a(rewire.Executable)),
        "explain_outputs": (lambda s: s.program.explain_outputs()[0].rewired, equals(True)),
        "functions": (lambda s: s.program.functions, equals(("main",))),
        "input_strings": (lambda s: s.program.input_strings, equals(())),
        "inputs": (lambda s: s.program.inputs, names("x")),
        "inputs_of": (lambda s: s.program.inputs_of("main"), names("x")),
        "memory_bound": (lambda s: s.program.memory_bound().static_bytes, is_a(int)),
        "metadata": (lambda s: s.program.metadata.graph_name, equals("")),
        "output_keys": (lambda s: s.program.output_keys, equals({})),
        "output_strings": (lambda s: s.program.output_strings, equals({})),
        "outputs": (lambda s: s.program.outputs, names("y")),
        "outputs_of": (lambda s: s.program.outputs_of("main"), names("y")),
        "parameters": (lambda s: s.program.parameters, names("w")),
        "profile": (lambda s: len(s.program.profile(X).rows()) >= 2, equals(True)),
        "run": (lambda s: s.program.run([X], out={"y": numpy.zeros(4, numpy.float32)}), is_y),
        "run_async": (lambda s: asyncio.run(s.program.run_async([X])), is_y),
        "vm": (lambda s: s.program.vm(), is_a(rewire.VirtualMachine)),
        "with_parameters": (lambda s: s.program.with_parameters({"w": X})(X)["y"],
                            lambda result: numpy.array_equal(result, X + X)),
    }),
    rewire.Executable: (Scene.by_call, {
        "__init__": (lambda s: cannot_be_made(rewire.Executable), equals(True)),
        "functions": (lambda s: s.executable.functions, equals(["main"])),
        "kernels": (lambda s: s.executable.kernels, equals(["host.gate", "rewire.add"])),
        "metadata": (lambda s: s.executable.metadata, is_a(dict)),
        "save": (lambda s: s.executable.save(s.folder / "again.rwx"), nothing),
        "to_bytes": (lambda s: s.executable.to_bytes(), is_a(bytes)),
    }),
    rewire.ParameterSet: (Scene.by_call, {
        "__contains__": (lambda s: "w" in s.weights, equals(True)),
        "__getitem__": (lambda s: numpy.array_equal(s.weights["w"], W), equals(True)),
        "__init__": (lambda s: cannot_be_made(rewire.ParameterSet), equals(True)),
        "__len__": (lambda s: len(s.weights), equals(1)),
        "__repr__": (lambda s: repr(s.weights), equals("rewire.ParameterSet(1 tensors)")),
        "from_arrays": (lambda s: rewire.ParameterSet.from_arrays({"w": W}).names(), equals(["w"])),
        "from_file": (lambda s: rewire.ParameterSet.from_file(s.folder / "program.rwx"), is_a(rewire.ParameterSet)),
        "from_program": (lambda s: rewire.ParameterSet.from_program(s.program).names(), equals(["w"])),
        "from_safetensors": (lambda s: rewire.ParameterSet.from_safetensors(s.folder / "program.rwx"),
                             is_a(rewire.ParameterSet)),
        "names": (lambda s: s.weights.names(), equals(["w"])),
    }),
    rewire.Tensor: (Scene.by_call, {
        "__dlpack__": (lambda s: s.tensor.__dlpack__(copy=True), lambda result: "dltensor" in repr(result)),
        "__dlpack_device__": (lambda s: s.tensor.__dlpack_device__(), equals((1, 0))),
        "__init__": (lambda s: cannot_be_made(rewire.Tensor), equals(True)),
        "__repr__": (lambda s: repr(s.tensor), equals("rewire.Tensor(f32[4])")),
        "data_ptr": (lambda s: s.tensor.data_ptr == s.x.ctypes.data, equals(True)),
        "dtype": (lambda s: s.tensor.dtype, equals("f32")),
        "nbytes": (lambda s: s.tensor.nbytes, equals(16)),
        "numpy": (lambda s: s.tensor.numpy(), is_x),
        "readonly": (lambda s: s.tensor.readonly, equals(False)),
        "shape": (lambda s: s.tensor.shape, equals((4,))),
    }),
    rewire.Adt: (Scene.by_call, {
        "__getitem__": (lambda s: s.adt[0], is_x),
        "__init__": (lambda s: len(rewire.Adt(1, [s.x])), equals(1)),
        "__len__": (lambda s: len(s.adt), equals(2)),
        "__repr__": (lambda s: repr(s.adt), equals("rewire.Adt(tag=3, 2 fields)")),
        "tag": (lambda s: s.adt.tag, equals(3)),
    }),
    rewire.Kernel: (Scene.by_call, {
        "__call__": (lambda s: s.kernel(1, 2), equals((1, 2))),
        "__init__": (lambda s: rewire.Kernel("a", len).name, equals("a")),
        "__repr__": (lambda s: repr(s.kernel), equals("rewire.kernel('mine')")),
    }),
    rewire.OrtValue: (Scene.by_call, {
        "__dlpack__": (lambda s: s.value.__dlpack__(), lambda result: "dltensor" in repr(result)),
        "__dlpack_device__": (lambda s: s.value.__dlpack_device__()[0], equals(1)),
        "__init__": (lambda s: rewire.OrtValue(X).numpy(), is_x),
        "data_ptr": (lambda s: s.value.data_ptr() == s.x.ctypes.data, equals(True)),
        "data_type": (lambda s: s.value.data_type(), equals("tensor(float)")),
        "device_name": (lambda s: s.value.device_name(), equals("cpu")),
        "element_type": (lambda s: s.value.element_type(), equals(numpy.float32)),
        "from_dlpack": (lambda s: rewire.OrtValue.from_dlpack(X).numpy(), is_x),
        "has_value": (lambda s: s.value.has_value(), equals(True)),
        "is_tensor": (lambda s: s.value.is_tensor(), equals(True)),
        "numpy": (lambda s: s.value.numpy(), is_x),
        "ortvalue_from_numpy": (lambda s: rewire.OrtValue.ortvalue_from_numpy(X).numpy(), is_x),
        "ortvalue_from_shape_and_type": (lambda s: rewire.OrtValue.ortvalue_from_shape_and_type([2]).shape(), equals([2])),
        "shape": (lambda s: s.value.shape(), equals([4])),
        "to_dlpack": (lambda s: s.value.to_dlpack(), lambda result: "dltensor" in repr(result)),
        "update_inplace": (lambda s: s.value.update_inplace(X), nothing),
    }),
    rewire.tvm.Device: (Scene.by_call, {
        "__init__": (lambda s: rewire.tvm.Device().kind, equals("cpu")),
        "__repr__": (lambda s: repr(s.device), equals("cpu(0)")),
        "sync": (lambda s: s.device.sync(), nothing),
    }),
    rewire.backend.BackendRep: (Scene.by_call, {
        "__init__": (lambda s: rewire.backend.BackendRep(s.program).program is s.program, equals(True)),
        "run": (lambda s: s.rep.run([X]), first_is_y),
    }),
    rewire.backend.Backend: (Scene.by_call, {
        "is_compatible": (lambda s: rewire.backend.is_compatible(models.add()), equals(True)),
        "prepare": (lambda s: rewire.backend.prepare(models.add()), is_a(rewire.backend.BackendRep)),
        "run_model": (lambda s: rewire.backend.run_model(models.identity(), [X])[0], is_x),
        "run_node": (lambda s: rewire.backend.run_node(onnx.helper.make_node("Identity", ["x"], ["y"]), [X])[0], is_x),
        "supports_device": (lambda s: rewire.backend.supports_device("CPU"), equals(True)),
    }),
    rewire: (Scene.by_call, {
        "assemble": (lambda s: rewire.assemble(PROGRAM), is_a(rewire.Executable)),
        "compile": (lambda s: rewire.compile(models.add()), is_a(rewire.Compilation)),
        "compiler_passes": (lambda s: rewire.compiler_passes(), is_a((list, tuple, dict))),
        "connect": (lambda s: is_told_that_nobody_listens(), equals(True)),
        "disassemble": (lambda s: rewire.disassemble(s.program), is_a(str)),
        "get_all_providers": (lambda s: rewire.get_all_providers(), equals(["CPUExecutionProvider"])),
        "get_device": (lambda s: rewire.get_device(), equals("CPU")),
        "onnxruntime_library": (lambda s: is_a_library_or_told(), equals(True)),
        "set_default_logger_severity": (lambda s: rewire.set_default_logger_severity(3), nothing),
        "set_default_logger_verbosity": (lambda s: rewire.set_default_logger_verbosity(3), nothing),
        "set_seed": (warned(lambda s: rewire.set_seed(3)), nothing),
        "get_available_providers": (lambda s: rewire.get_available_providers(), equals(["CPUExecutionProvider"])),
        "kernel": (lambda s: rewire.kernel("a")(len), is_a(rewire.Kernel)),
        "load": (lambda s: rewire.load(models.add()), is_a(rewire.Program)),
        "tensor": (lambda s: rewire.tensor(s.x), is_a(rewire.Tensor)),
    }),
    rewire.tvm: (Scene.by_call, {
        "cpu": (lambda s: rewire.tvm.cpu(1).device_id, equals(1)),
        "load": (lambda s: rewire.tvm.load(models.add()), is_a(rewire.Program)),
    }),
    rewire.backend: (Scene.by_call, {}),
}
ROWS = [(owner, name) for owner, (_, rows) in TABLE.items() for name in rows]

# What Python does with an object beside calling its methods. Other special methods are Python's own.
SPECIAL = {"__init__", "__call__", "__len__", "__getitem__", "__contains__", "__repr__", "__dlpack__", "__dlpack_device__"}


def is_plain(owner):
    """Whether a class only holds what somebody else has computed."""
    return (dataclasses.is_dataclass(owner) or issubclass(owner, (rewire.Error, rewire.Profile, enum.Enum))
            or owner in (rewire.SessionOptions, rewire.RunOptions))


def public_classes():
    for module in (rewire, rewire.tvm, rewire.backend):
        for name in getattr(module, "__all__", dir(module)):
            found = getattr(module, name)
            if inspect.isclass(found) and not name.startswith("_") and not is_plain(found):
                yield found


def public_names(owner):
    if inspect.ismodule(owner):
        for name in getattr(owner, "__all__", dir(owner)):
            found = getattr(owner, name)
            # The functions of the backend are its class's.
            if not name.startswith("_") and callable(found) and not inspect.isclass(found) and not inspect.ismethod(found):
                yield name
        return
    for name in dir(owner):
        own = name in SPECIAL and any(name in vars(base) for base in owner.__mro__[:-1])
        if own or not name.startswith("_"):
            yield name


def test_every_public_name_has_a_row():
    assert set(public_classes()) == {owner for owner in TABLE if inspect.isclass(owner)}
    for owner, (_, rows) in TABLE.items():
        assert sorted(set(public_names(owner))) == sorted(rows), owner


class Elsewhere:
    """Calls something on another thread and gives what that gave."""

    def __init__(self, call):
        self._call, self.result, self.error = call, None, None

    def _run(self):
        try:
            self.result = self._call()
        except BaseException as error:  # given to the test; without its frames, which have the kernel's arrays
            self.error = error.with_traceback(None)

    def __call__(self):
        thread = threading.Thread(target=self._run)
        thread.start()
        thread.join()


@pytest.mark.parametrize("where", ["another thread", "a kernel of the run"])
@pytest.mark.parametrize("owner, name", ROWS, ids=[f"{owner}.{name}" for owner, name in ROWS])
def test_while_a_run_goes_on(owner, name, where, monkeypatch, tmp_path):
    scene = Scene(monkeypatch, tmp_path)
    begin, rows = TABLE[owner]
    call, expected = rows[name]
    assert is_y(begin(scene))  # a first result to look at
    meanwhile = Elsewhere(lambda: call(scene))
    scene.gate.meanwhile = meanwhile if where == "another thread" else meanwhile._run
    if expected is CANCELS:
        with pytest.raises(rewire.CancelledError):
            begin(scene)
        assert meanwhile.error is None
    else:
        assert is_y(begin(scene))
        if expected is BUSY:
            assert isinstance(meanwhile.error, rewire.BusyError), (meanwhile.error, meanwhile.result)
        else:
            assert meanwhile.error is None and expected(meanwhile.result), (meanwhile.error, meanwhile.result)
    assert scene.gate.meanwhile is None
    assert is_y(begin(scene))  # and nothing has changed


def test_a_machine_that_two_threads_use_at_all_times(monkeypatch, tmp_path):
    scene = Scene(monkeypatch, tmp_path)
    vm = rewire.load(models.add((4,))).vm()
    vm.set_input("a", X)
    vm.set_input("b", W)
    vm.invoke()
    rounds, failed = 400, []
    done = threading.Event()

    def runs():
        for _ in range(rounds):
            try:
                vm.invoke()
            except rewire.BusyError:
                continue
            except BaseException as error:
                failed.append(error)
        done.set()

    looks = [lambda: vm.output("sum"), lambda: vm.outputs()["sum"], lambda: vm.set_input("a", X),
             lambda: vm.set_output("sum", None), lambda: vm.require_zero_copy(False), vm.set_limits, lambda: vm.bytes_held]
    thread = threading.Thread(target=runs)
    thread.start()
    answers = 0
    while not done.is_set() or answers < rounds:
        for look in looks:
            try:
                result = look()
            except rewire.BusyError:
                continue
            answers += 1
            if isinstance(result, numpy.ndarray):
                assert is_y(result)
    thread.join()
    assert not failed
    assert is_y(vm.output("sum")) and scene.gate.meanwhile is None
