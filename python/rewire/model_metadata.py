# SPDX-License-Identifier: Apache-2.0
"""What an ONNX model says about itself, read from its bytes: the compiler does not keep it."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from typing import Any, Iterator, Union

Field = Union[int, memoryview]


@dataclass(frozen=True)
class ModelMetadata:
    """What a model says about itself. Of a compiled model all of it is empty."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


def _number(data: memoryview, at: int) -> tuple[int, int]:
    """A number in protobuf's encoding, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data: memoryview) -> Iterator[tuple[int, Field]]:
    """The fields of a message: their numbers, and what is in them."""
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _number(data, at)
            yield key >> 3, value
            continue
        size, at = _number(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        yield key >> 3, data[at:at + size]
        at += size


def _text(value: Field) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, memoryview) else ""


def _of_bytes(data: memoryview) -> ModelMetadata:
    model: dict[int, Field] = {}
    graph: dict[int, Field] = {}
    entries: dict[str, str] = {}
    for number, value in _fields(data):
        if number == 7 and isinstance(value, memoryview):
            graph = {each: found for each, found in _fields(value) if each in (2, 10)}
        elif number == 14 and isinstance(value, memoryview):
            entry = dict(_fields(value))
            entries[_text(entry.get(1, 0))] = _text(entry.get(2, 0))
        else:
            model[number] = value
    version = model.get(5, 0)
    return ModelMetadata(
        _text(model.get(2, 0)), _text(graph.get(2, 0)), _text(model.get(4, 0)), _text(model.get(6, 0)),
        _text(graph.get(10, 0)), version if isinstance(version, int) else 0, entries)


def of_model(model: Any) -> ModelMetadata:
    """Of the path or the bytes of a model; empty for what is no ONNX model."""
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (str, os.PathLike)):
        if not os.fsdecode(model).endswith(".onnx"):
            return ModelMetadata()
        with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            # The memory can only be let go of when no view of it is left.
            with memoryview(mapped) as view:
                return _of_bytes(view)
    data = memoryview(model)
    return _of_bytes(data) if bytes(data[:1]) == b"\x08" else ModelMetadata()
