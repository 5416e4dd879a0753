# SPDX-License-Identifier: Apache-2.0
"""The table of functions that C source of vm-aot has, called by ctypes (docs/aot.md)."""
import ctypes

import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
          "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "bool": np.bool_, "f16": np.float16}


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_uint64)]


class Function(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("executable", ctypes.c_uint64), ("arena_bytes", ctypes.c_uint64), ("inputs", ctypes.POINTER(Tensor)),
                ("input_count", ctypes.c_int32), ("outputs", ctypes.POINTER(Tensor)), ("output_count", ctypes.c_int32),
                ("sizes", ctypes.c_void_p), ("size_count", ctypes.c_int32), ("output_dims", ctypes.c_void_p),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p))]

    def call(self, inputs, outputs):
        """Runs the function over arrays, in an arena that begins with other bytes than 0; returns the code."""
        arena = np.full(self.arena_bytes + 64, 0xA5, np.uint8)
        begin = arena[-arena.ctypes.data % 16:]
        return self.run(None, begin.ctypes.data, None, None, addresses(inputs), addresses(outputs))


def empty(tensor):
    """An array for a tensor of the table; None if numpy lacks its dtype."""
    if tensor.dtype.decode() not in DTYPES:
        return None
    return np.zeros([tensor.dims[i] for i in range(tensor.rank)], DTYPES[tensor.dtype.decode()])


def addresses(arrays):
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])
