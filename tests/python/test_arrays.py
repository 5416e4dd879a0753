# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: what is read-only stays read-only, and DLPack says what the array API standard says."""

import ctypes
import os
import subprocess
import sys
import textwrap

import numpy
import pytest
import rewire

FRESH = numpy.arange(4, dtype=numpy.float32)


class Exporter:
    """Has DLPack and nothing else. Its capsules are made here, with any version, flags and dimensions."""

    class Managed(ctypes.Structure):
        _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                    ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
                    ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                    ("byte_offset", ctypes.c_uint64)]

    def __init__(self, array, major=1, flags=0):
        self.array, self.deleted = array, 0
        self._shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._delete)
        self.managed = self.Managed(major, 0, None, ctypes.cast(self._deleter, ctypes.c_void_p), flags,
                                    array.ctypes.data, 1, 0, array.ndim, 2, 32, 1, self._shape, None, 0)

    def _delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, max_version=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def mapped(array, folder):
    numpy.save(folder / "x.npy", array)
    return numpy.load(folder / "x.npy", mmap_mode="r")


# What is read-only, over memory of an f32[4], in every form that Python has for it.
READ_ONLY = {
    "an array": lambda folder: frozen(FRESH),
    "a view": lambda folder: frozen(numpy.concatenate([FRESH[:2], FRESH]))[2:],
    "bytes": lambda folder: numpy.frombuffer(FRESH.tobytes(), numpy.float32),
    "a memoryview": lambda folder: memoryview(FRESH.tobytes()).cast("f"),
    "a mapped file": lambda folder: mapped(FRESH, folder),
    "DLPack": lambda folder: Exporter(FRESH.copy(), flags=1),
    "a tensor": lambda folder: rewire.tensor(frozen(FRESH)),
    "a tensor of a tensor": lambda folder: rewire.tensor(rewire.tensor(frozen(FRESH))),
    "DLPack of numpy": lambda folder: numpy.from_dlpack(rewire.tensor(frozen(FRESH))),
    "a parameter": lambda folder: rewire.ParameterSet.from_arrays({"w": FRESH.copy()})["w"],
    "a result": lambda folder: identity(frozen(FRESH))["y"],
}


PASSING = """
.const flat: i64[2] = {2, 2}
.const c: f32[4] = {1, 2, 3, 4}
.kernel see = "mine.see"
.func main(x: f32[4]) -> (y: f32[4], view: f32[2, 2])
  %flat = load_const flat
  %view = reshape_tensor %x, %flat
  invoke_packed see(%x, %view), outputs=0
  %both = alloc_adt tag=0 (%x, %view)
  ret %both
.end
"""
seen = []


def see(*tensors):
    seen[:] = [tensor.flags.writeable for tensor in tensors]


def passing():
    return rewire.load(rewire.assemble(PASSING), kernels={"mine.see": see})


def identity(x):
    return passing()(x)


def by_machine(x):
    vm = passing().vm()
    vm.set_input("x", x)
    vm.invoke()
    return [vm.output("y"), vm.output(1), *vm.outputs().values()]


# Every way from such an object to an array.
OUT = {
    "numpy()": lambda x: [rewire.tensor(x).numpy()],
    "the buffer": lambda x: [numpy.asarray(memoryview(rewire.tensor(x)))],
    "DLPack": lambda x: [numpy.from_dlpack(rewire.tensor(x))],
    "a call": lambda x: passing()(x).values(),
    "a run": lambda x: passing().run({"x": x}).values(),
    "a machine": by_machine,
    "a field": lambda x: [rewire.Adt(1, [x])[0]],
    "a parameter": lambda x: [rewire.ParameterSet.from_arrays({"w": x})["w"]],
    "two rounds": lambda x: identity(identity(x)["y"]).values(),
}


@pytest.mark.parametrize("way_out", OUT)
@pytest.mark.parametrize("way_in", READ_ONLY)
def test_what_is_read_only_stays_so(way_in, way_out, tmp_path):
    given = READ_ONLY[way_in](tmp_path)
    assert rewire.tensor(given).readonly
    for array in OUT[way_out](given):
        numpy.testing.assert_array_equal(array.reshape(4), FRESH)
        assert not array.flags.writeable
        with pytest.raises(ValueError):
            array.flags.writeable = True
    with pytest.raises(rewire.InvalidArgumentError, match="read-only"):
        passing().run({"x": FRESH}, out={"y": given})
    tensor = rewire.tensor(given)
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()


@pytest.mark.parametrize("way_out", OUT)
def test_what_is_writable_stays_so(way_out):
    mine = FRESH.copy()
    for array in OUT[way_out](mine):
        assert array.flags.writeable is (way_out != "a parameter")  # parameters never are
        assert numpy.shares_memory(array, mine)


def test_a_kernel_must_not_write_inputs():
    for x in (frozen(FRESH), FRESH.copy()):
        identity(x)
        assert seen == [False, False]


def managed_of(capsule):
    """What a capsule has: its name, and the flags of a versioned one."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = name(capsule).decode()
    if found == "dltensor":
        return found, None
    managed = Exporter.Managed.from_address(pointer(capsule, found.encode()))
    assert managed.major == 1
    return found, managed.flags


READ, COPIED = 1, 2


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("copy", [None, False, True])
@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 1), (2, 3)])
def test_what_an_export_says(read_only, copy, max_version):
    mine = frozen(FRESH) if read_only else FRESH.copy()
    tensor = rewire.tensor(mine)
    versioned = max_version is not None and max_version >= (1, 0)
    if read_only and not copy and not versioned:
        with pytest.raises(BufferError, match="read-only"):
            tensor.__dlpack__(copy=copy, max_version=max_version)
        return
    found, flags = managed_of(tensor.__dlpack__(copy=copy, max_version=max_version))
    assert found == ("dltensor_versioned" if versioned else "dltensor")
    if versioned:
        assert flags == (COPIED if copy else READ if read_only else 0)


@pytest.mark.parametrize("read_only", [False, True])
def test_numpy_gets_what_it_asks_for(read_only):
    mine = frozen(FRESH) if read_only else FRESH.copy()
    tensor = rewire.tensor(mine)
    for copy in (None, False):
        shared = numpy.from_dlpack(tensor, copy=copy)
        assert numpy.shares_memory(shared, mine) and shared.flags.writeable is not read_only
    copied = numpy.from_dlpack(tensor, copy=True, device="cpu")
    copied[...] = 99
    numpy.testing.assert_array_equal(mine, FRESH)
    strided = numpy.arange(8, dtype=numpy.float32)[::2]
    numpy.testing.assert_array_equal(numpy.from_dlpack(rewire.tensor(strided), copy=True), strided)


def test_exports_that_cannot_be():
    tensor = rewire.tensor(FRESH.copy())
    assert tensor.__dlpack_device__() == (1, 0)
    for good in ({}, {"stream": None}, {"dl_device": (1, 0)}, {"dl_device": None, "copy": False}):
        assert managed_of(tensor.__dlpack__(**good))[0] == "dltensor"
    for device in [(2, 0), (1, 1), (3, 0), (4, 0), (-1, 0)]:
        for copy in (None, False, True):
            with pytest.raises(BufferError, match=r"dl_device: the tensor lies on device \(1, 0\)"):
                tensor.__dlpack__(dl_device=device, copy=copy)
    for stream in (-1, 0, 1, 2, 1234, "a stream"):
        with pytest.raises(BufferError, match="stream: expected None"):
            tensor.__dlpack__(stream=stream)
    with pytest.raises(TypeError):
        tensor.__dlpack__(max_version=1)


def test_other_versions_are_refused_by_their_version_alone():
    other = Exporter(FRESH.copy(), major=2, flags=1)
    for call in (lambda: rewire.tensor(other), lambda: passing().run({"x": FRESH}, out={"y": other})):
        with pytest.raises(rewire.UnsupportedError, match="DLPack version 2.0 given"):
            call()
    assert other.deleted == 2
    # A struct of which only the version and the deleter can be read: the flags lie in a page without access.
    script = """
        import ctypes, mmap, numpy, rewire, test_arrays
        page = mmap.PAGESIZE
        memory = mmap.mmap(-1, 2 * page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        given = test_arrays.Exporter(numpy.zeros(4, numpy.float32), major=2)
        size = test_arrays.Exporter.Managed.flags.offset
        ctypes.memmove(address + page - size, ctypes.addressof(given.managed), size)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 0) == 0
        class Short:
            def __dlpack_device__(self):
                return (1, 0)
            def __dlpack__(self, max_version=None):
                new = ctypes.pythonapi.PyCapsule_New
                new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
                return new(address + page - size, b"dltensor_versioned", None)
        try:
            rewire.tensor(Short())
        except rewire.UnsupportedError:
            print("refused", given.deleted, flush=True)
        import os
        os._exit(0)
    """
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([os.path.dirname(__file__), *sys.path]))
    done = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(script)], env=environment, capture_output=True,
                          text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "refused 1\n"), done.stderr
