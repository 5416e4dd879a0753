# SPDX-License-Identifier: Apache-2.0
"""The everyday calls of ONNX Runtime, so that switching is one import:

    import rewire as ort
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    scores = session.run(None, {"image": pixels})[0]
"""

from dataclasses import dataclass
from typing import List, Optional, Union

import numpy

from rewire import errors
from rewire.program import load
from rewire.signature import numpy_name

_ORT_NAMES = {
    "f16": "float16", "f32": "float", "f64": "double", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool", "c64": "complex64",
    "c128": "complex128",
}


@dataclass(frozen=True)
class NodeArg:
    """An input or an output. `type` is spelled as ONNX Runtime does: "tensor(float)"."""

    name: str
    type: str
    shape: Optional[List[Union[int, str, None]]]


class SessionOptions:
    """What a session is made with. Only `intra_op_num_threads` has an effect; 0 means one thread."""

    def __init__(self):
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.log_severity_level = 2
        self.graph_optimization_level = 99
        self.execution_mode = 0
        self.enable_profiling = False
        self.free_dimensions = {}

    def add_free_dimension_override_by_name(self, name, size):
        """Fixes a symbolic dimension."""
        self.free_dimensions[name] = size


class RunOptions:
    """What one run is made with. It has no effect; `terminate` is not supported, VirtualMachine.cancel is."""

    def __init__(self):
        self.log_severity_level = 2
        self.logid = ""
        self.only_execute_path_to_fetches = False


class OrtValue:
    """A tensor in host memory."""

    def __init__(self, array):
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array, device_type="cpu", device_id=0):
        """Refers to the array's memory."""
        _require_cpu(device_type)
        return OrtValue(numpy.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type=numpy.float32, device_type="cpu", device_id=0):
        """Allocates a tensor whose contents are undefined."""
        _require_cpu(device_type)
        return OrtValue(numpy.empty(shape, element_type))

    @staticmethod
    def from_dlpack(tensor):
        """Refers to the memory of a tensor of any library of DLPack."""
        return OrtValue(numpy.from_dlpack(tensor))

    def numpy(self):
        """The array itself, not a copy."""
        return self._array

    def to_dlpack(self):
        """A DLPack capsule over the same memory."""
        return self._array.__dlpack__()

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def shape(self):
        """The dimensions."""
        return list(self._array.shape)

    def data_ptr(self):
        """The address of the first element."""
        return self._array.ctypes.data

    def data_type(self):
        """The type as ONNX Runtime spells it: "tensor(float)"."""
        names = {numpy_name(ours): theirs for ours, theirs in _ORT_NAMES.items()}
        return f"tensor({names.get(self._array.dtype.name, self._array.dtype.name)})"

    def device_name(self):
        """Always "cpu"."""
        return "cpu"

    def is_tensor(self):
        """Always True."""
        return True

    def has_value(self):
        """Always True."""
        return True

    def element_type(self):
        """The element type of the array."""
        return self._array.dtype

    def update_inplace(self, array):
        """Copies the array's elements into this tensor."""
        self._array[...] = array


def _require_cpu(device_type):
    if device_type != "cpu":
        raise errors.UnsupportedError(f"device {device_type!r} is not supported; give 'cpu'")


class IOBinding:
    """Inputs and outputs that are bound to memory for several runs. `InferenceSession.io_binding` makes one."""

    def __init__(self, session):
        self._vm = session.program.vm()
        self._names = [output.name for output in session.program.outputs]
        self._bound = {}

    def bind_cpu_input(self, name, array):
        """Binds an input to an array, which is read when a run begins."""
        self._vm.set_input(name, numpy.asarray(array))

    def bind_ortvalue_input(self, name, value):
        """Binds an input to a tensor."""
        self._vm.set_input(name, value.numpy())

    def bind_input(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds an input to the tensor at an address, which must stay until it is bound again."""
        _require_cpu(device_type)
        self._vm.set_input(name, _array_at(buffer_ptr, element_type, shape))

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Binds an output to the tensor at an address; without an address the session allocates it."""
        _require_cpu(device_type)
        array = None if buffer_ptr is None else _array_at(buffer_ptr, element_type, shape)
        self._bind(name, array)

    def bind_ortvalue_output(self, name, value):
        """Binds an output to a tensor, into which runs write."""
        self._bind(name, value.numpy())

    def clear_binding_inputs(self):
        """Forgets the inputs."""
        self._vm.clear_inputs()

    def clear_binding_outputs(self):
        """Forgets the outputs."""
        self._vm.clear_outputs()
        self._bound.clear()

    def synchronize_inputs(self):
        """Does nothing: everything lies on the host."""

    def synchronize_outputs(self):
        """Does nothing: a run that has returned is finished."""

    def get_outputs(self):
        """The bound outputs of the last run, as OrtValue, in the order in which they were bound."""
        return [OrtValue(self._value(name)) for name in self._bound or self._names]

    def copy_outputs_to_cpu(self):
        """The bound outputs of the last run as copies."""
        return [numpy.array(self._value(name)) for name in self._bound or self._names]

    def _bind(self, name, array):
        self._vm.set_output(name, array)
        self._bound[name] = array

    def _value(self, name):
        # Also for a bound array: there may be no result yet, or another thread may be running.
        value, bound = self._vm.output(name), self._bound.get(name)
        return value if bound is None else bound


def _array_at(address, element_type, shape):
    import ctypes

    dtype = numpy.dtype(element_type)
    size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(address)
    return numpy.frombuffer(memory, dtype).reshape(shape)


def get_available_providers():
    """Where programs can run: on the host."""
    return ["CPUExecutionProvider"]


class InferenceSession:
    """A model with ONNX Runtime's calls. `program` is the rewire.Program behind it.

    Any number of threads may call `run` at once. Errors are those of rewire.
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        threads = max(1, sess_options.intra_op_num_threads) if sess_options is not None else 1
        dims = dict(getattr(sess_options, "free_dimensions", None) or {})
        self.program = load(path_or_bytes, threads=threads, dims=dims)
        self._options = sess_options
        self._strings, self._keys = self.program.output_strings, self.program.output_keys
        self._texts = self.program._input_texts(), self.program._output_texts()
        # The lists of strings stand behind them, and are no inputs or outputs of the model's.
        self._inputs, self._outputs = (
            [each for each in infos if not any(each.name in parts for parts in texts.values())]
            for infos, texts in zip((self.program.inputs, self.program.outputs), self._texts))
        self._names = [output.name for output in self._outputs]

    def run(self, output_names, input_feed, run_options=None):
        """Runs the model and returns the outputs of these names, all if None, as a list of arrays.

        Strings are arrays of objects, and an output of maps is a list of dicts, as ONNX Runtime gives them.
        """
        outputs = self.program(_arrays(input_feed))
        for name in (*self._strings, *self._texts[1]):
            outputs[name] = outputs[name].astype(object)
        for name, keys in self._keys.items():
            outputs[name] = [dict(zip(keys, row)) for row in outputs[name].tolist()]
        if not output_names:
            return list(outputs.values())
        return [self._pick(outputs, name) for name in output_names]

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        """The same with OrtValue in and out."""
        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feed)]

    def get_inputs(self):
        """The inputs, as NodeArg."""
        return [_node_arg(info, info.name in self._texts[0]) for info in self._inputs]

    def get_outputs(self):
        """The outputs, as NodeArg."""
        return [self._output_arg(info) for info in self._outputs]

    def get_providers(self):
        """Where the session runs."""
        return get_available_providers()

    def get_session_options(self):
        """The options that the session was made with."""
        return self._options

    def io_binding(self):
        """Returns an IOBinding of this session."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Runs the model with bound inputs and outputs."""
        iobinding._vm.invoke()

    def _output_arg(self, info):
        arg = _node_arg(info, info.name in self._strings or info.name in self._texts[1])
        if info.name in self._keys:
            key = "string" if isinstance(self._keys[info.name][0], str) else "int64"
            return NodeArg(arg.name, f"seq(map({key},{arg.type}))", [])
        return arg

    def _pick(self, outputs, name):
        if name not in outputs:
            raise errors.InvalidArgumentError(f"there is no output {name!r}; there are: {', '.join(self._names)}")
        return outputs[name]


def _arrays(feed):
    """Lists and OrtValue as arrays; anything else as it is."""
    if any(isinstance(value, OrtValue) for value in feed.values()):
        return {name: value.numpy() if isinstance(value, OrtValue) else value for name, value in feed.items()}
    return feed


def _node_arg(info, is_strings=False):
    dtype = "string" if is_strings else _ORT_NAMES.get(info.dtype, info.dtype)
    return NodeArg(info.name, info.type if dtype is None else f"tensor({dtype})",
                   None if info.shape is None else list(info.shape))
