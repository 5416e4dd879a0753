# SPDX-License-Identifier: Apache-2.0
"""What the elements of inputs and outputs stand for, by an executable's metadata.

A model's tensors of strings are positions in a list. The metadata has the list, or says which two other tensors hold it:
offsets and bytes. A map is a row of a tensor, with a column for each key.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Sequence, Tuple, Union

import numpy
import numpy.typing

from rewire import errors
from rewire._native._rewire import Executable

Strings = Dict[str, Tuple[str, ...]]
"""The lists of strings of some outputs, by name."""
Keys = Dict[str, Tuple[Union[int, str], ...]]
"""The keys of some outputs that are maps, by name."""
Parts = Dict[str, Tuple[str, str]]
"""For inputs or outputs that are strings, by name: the names of the two that hold their list."""


def _list_of(metadata: Mapping[str, str], key: str) -> tuple[Any, ...] | None:
    """A tuple, or None if there is none. Anyone may have written the file: what is no list counts as none."""
    try:
        found = json.loads(metadata[key])
    except (KeyError, ValueError):
        return None
    return tuple(found) if isinstance(found, list) else None


def of_outputs(executable: Executable, function: str, names: Sequence[str]) -> tuple[Strings, Keys]:
    """Two dicts by the names of outputs: lists of strings, and lists of keys."""
    metadata = executable.metadata
    if not any(key.startswith(("strings ", "keys ")) for key in metadata):
        return {}, {}
    strings: Strings = {}
    keys: Keys = {}
    for place, name in enumerate(names):
        texts = _list_of(metadata, f"strings {function}.{place}")
        if texts is not None and all(isinstance(text, str) for text in texts):
            strings[name] = texts
        columns = _list_of(metadata, f"keys {function}.{place}")
        if columns is not None and all(isinstance(column, (int, str)) for column in columns):
            keys[name] = columns
    return strings, keys


def computed(executable: Executable, prefix: str, function: str, names: Sequence[str]) -> Parts:
    """A dict by name: for an input or output that is strings, the names of the two that hold its list."""
    metadata = executable.metadata
    if not any(key.startswith(prefix) for key in metadata):
        return {}
    found: Parts = {}
    for place, name in enumerate(names):
        try:
            places = json.loads(metadata[f"{prefix}{function}.{place}"])
            found[name] = names[places["offsets"]], names[places["bytes"]]
        except (KeyError, ValueError, TypeError, IndexError):  # none, or none of ours
            continue
    return found


def as_positions(name: str, value: Any) -> tuple[numpy.typing.NDArray[Any], ...] | None:
    """Strings as three arrays: positions, offsets and bytes. None for what is no array of strings."""
    array = value if isinstance(value, numpy.ndarray) else numpy.asarray(value, None if isinstance(value, str) else object)
    if array.dtype.kind not in "UO":
        return None
    encoded = []
    for text in array.ravel().tolist():
        if not isinstance(text, str):
            if not isinstance(value, numpy.ndarray):
                return None  # numbers in a list
            raise errors.InvalidArgumentError(f"input {name!r} is strings, one of its elements is {text!r}")
        encoded.append(text.encode())
    offsets = numpy.zeros(len(encoded) + 1, numpy.int64)
    numpy.cumsum([len(text) for text in encoded], out=offsets[1:])
    positions = numpy.arange(len(encoded), dtype=numpy.int64).reshape(array.shape)
    return positions, offsets, numpy.frombuffer(b"".join(encoded), numpy.uint8)


def with_positions(inputs: Mapping[str, Any], texts: Parts) -> dict[str, Any]:
    """A dict of inputs with three arrays in place of each one of strings."""
    given = dict(inputs)
    for name, parts in texts.items():
        if name not in given or any(part in given for part in parts):
            continue
        arrays = as_positions(name, given[name])
        if arrays is not None:
            given.update(zip((name, *parts), arrays))
    return given


def with_computed(outputs: dict[str, Any], texts: Parts, bound: Sequence[Any] = ()) -> dict[str, Any]:
    """The outputs with arrays of str in place of positions and of the two outputs with their list."""
    for name, (ends, data) in texts.items():
        if name not in outputs or any(outputs[each] is mine for each in (name, ends, data) for mine in bound):
            continue
        offsets, content = outputs.pop(ends).tolist(), outputs.pop(data).tobytes()
        strings = [content[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]
        outputs[name] = numpy.asarray(numpy.array(strings, str)[outputs[name]])
    return outputs


def with_strings(outputs: dict[str, Any], strings: Strings, bound: Sequence[Any] = ()) -> dict[str, Any]:
    """The outputs with arrays of str in place of positions. Those in `bound`, the caller's own arrays, stay."""
    for name, texts in strings.items():
        positions = outputs.get(name)
        if positions is None or any(positions is each for each in bound):
            continue
        outputs[name] = numpy.asarray(numpy.array(texts, str)[positions])
    return outputs
