# SPDX-License-Identifier: Apache-2.0
"""Writes .tflite files by the classes of LiteRT's schema module."""
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

OPERATORS = schema.BuiltinOperator
OPTIONS = schema.BuiltinOptions
TYPES = {np.dtype(np.float32): schema.TensorType.FLOAT32, np.dtype(np.int8): schema.TensorType.INT8,
         np.dtype(np.uint8): schema.TensorType.UINT8, np.dtype(np.int32): schema.TensorType.INT32}


class Model:
    """A model of one subgraph. Tensors go by their numbers."""

    def __init__(self):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.operatorCodes, self.model.buffers, self.codes = [], [schema.BufferT()], {}
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model.subgraphs = [self.graph]

    def tensor(self, name, shape, dtype, scale=None, zero=0, axis=0, data=None):
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.type, tensor.buffer = name.encode(), list(shape), TYPES[np.dtype(dtype)], 0
        if scale is not None:
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = scales
            tensor.quantization.zeroPoint = np.broadcast_to(np.asarray(zero, np.int64), scales.shape)
            tensor.quantization.quantizedDimension = axis
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data, dtype).tobytes(), np.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, name, data, scale=None, zero=0, axis=0):
        data = np.asarray(data)
        return self.tensor(name, data.shape, data.dtype, scale, zero, axis, data)

    def operator(self, name, inputs, outputs, kind=None, **fields):
        """`kind` is the class of the options, and `fields` are what they have."""
        code = getattr(OPERATORS, name)
        if code not in self.codes:
            row = schema.OperatorCodeT()
            row.builtinCode, row.deprecatedBuiltinCode, row.version = code, min(code, 127), 1
            self.codes[code] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(row)
        op = schema.OperatorT()
        op.opcodeIndex, op.inputs, op.outputs = self.codes[code], list(inputs), list(outputs)
        if kind is not None:
            op.builtinOptionsType = getattr(OPTIONS, kind)
            op.builtinOptions = getattr(schema, kind + "T")()
            for field, value in fields.items():
                if not hasattr(op.builtinOptions, field):
                    raise AttributeError(f"{kind} has no {field}")
                setattr(op.builtinOptions, field, value)
        self.graph.operators.append(op)

    def write(self, inputs, outputs):
        self.graph.inputs, self.graph.outputs = list(inputs), list(outputs)
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
