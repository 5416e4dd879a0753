# SPDX-License-Identifier: Apache-2.0
"""What the elements of outputs stand for: lists that an executable's metadata has.

A model's tensors of strings are positions in such a list, and a map is a row of a tensor, with a column for each key.
"""

import json


def _list_of(metadata, key):
    """A tuple, or None if there is none. Anyone may have written the file: what is no list counts as none."""
    try:
        found = json.loads(metadata[key])
    except (KeyError, ValueError):
        return None
    return tuple(found) if isinstance(found, list) else None


def of_outputs(executable, function, names):
    """Two dicts by the names of outputs: lists of strings, and lists of keys."""
    metadata = executable.metadata
    if not any(key.startswith(("strings ", "keys ")) for key in metadata):
        return {}, {}
    strings, keys = {}, {}
    for place, name in enumerate(names):
        texts = _list_of(metadata, f"strings {function}.{place}")
        if texts is not None and all(isinstance(text, str) for text in texts):
            strings[name] = texts
        columns = _list_of(metadata, f"keys {function}.{place}")
        if columns is not None and all(isinstance(column, (int, str)) for column in columns):
            keys[name] = columns
    return strings, keys


def with_strings(outputs, strings, bound=()):
    """The outputs with arrays of str in place of positions. Those in `bound`, the caller's own arrays, stay."""
    import numpy

    for name, texts in strings.items():
        positions = outputs.get(name)
        if positions is None or any(positions is each for each in bound):
            continue
        outputs[name] = numpy.array(texts)[positions]
    return outputs
