# SPDX-License-Identifier: Apache-2.0
"""Relay programs, one family a file. Importing a family registers its cases."""

import collections
import importlib
import zlib

import numpy as np
import tvm
from tvm import relay

FAMILIES = ("arithmetic", "tuples", "control", "adts", "trees", "closures", "dynamic", "constants", "networks")
FAMILIES += ("runtime", "target_c")

# inputs: {parameter name: array or casefile.Adt} in parameter order, or such pairs where names repeat.
Call = collections.namedtuple("Call", "function inputs")
# late_bound: constants of at least so many bytes are left out of the code and saved beside it. target: other than
# that of the toolchain.
Program = collections.namedtuple("Program", "module calls late_bound opt_level target")
Program.__new__.__defaults__ = (None, 3, None)  # namedtuple has no `defaults` in Python 3.6

SINCE_0_9 = "since 0.9"  # the tag of what TVM 0.8 does not parse
CASES = {}  # name -> (function that makes the Program, tags)


def case(*tags):
    """Registers a function that makes a Program; its name is the case's, its module's a tag."""

    def register(make):
        assert make.__name__ not in CASES, make.__name__
        family = make.__module__.rsplit(".", 1)[-1]
        CASES[make.__name__] = (make, (family,) + tags)
        return make

    return register


def load():
    """The cases that this TVM can compile."""
    for family in FAMILIES:
        importlib.import_module(f"{__name__}.{family}")
    if not tvm.__version__.startswith("0.8"):
        return CASES
    return {name: entry for name, entry in CASES.items() if SINCE_0_9 not in entry[1]}


def parse(text):
    """A module from Relay's text form."""
    fromtext = getattr(relay, "fromtext", None) or tvm.parser.fromtext
    return fromtext('#[version = "0.0.5"]\n' + text)


def constructors(module, type_name):
    """{constructor name: tag}; tags are hashes of the type's name, so only TVM can tell them."""
    return {c.name_hint: int(c.tag) for c in module[module.get_global_type_var(type_name)].constructors}


def program(text, *inputs, function="main", **options):
    """A Program of one call from text."""
    return Program(parse(text), [Call(function, each) for each in inputs], **options)


def normal(*shape, dtype="float32", seed=""):
    """Values that are the same in every run and differ between shapes and seeds."""
    state = np.random.RandomState(zlib.crc32(f"{shape}{seed}".encode()))
    if np.issubdtype(np.dtype(dtype), np.integer):
        return state.randint(-9, 10, shape).astype(dtype)
    return np.asarray(state.standard_normal(shape)).astype(dtype)
