# SPDX-License-Identifier: Apache-2.0
"""What a schema cannot say: which shapes and values go together, operator by operator.

A rule is a function of the builder and the operator's schema. It adds the node and gives its outputs. An operator without a
rule is drawn from its schema alone (generic.py).
"""

RULES = {}


def rule(*kinds, domain=""):
    def register(function):
        for kind in kinds:
            RULES[domain, kind] = function
        return function

    return register


def types_of(spelled):
    """The types that a schema spells, of those that are drawn."""
    from draws import DTYPES, NAMES

    return sorted((DTYPES[NAMES[text[7:-1]]][0] for text in spelled if text.startswith("tensor(") and text[7:-1] in NAMES), key=str)


def dtypes(schema, place):
    """The types that the schema allows for an input, of those that are drawn."""
    return types_of(schema.inputs[min(place, len(schema.inputs) - 1)].types)


def has(schema, attribute):
    return attribute in schema.attributes


def given(draws, **attributes):
    """These attributes, each left out half of the time; those that are None always."""
    return {name: value for name, value in attributes.items() if value is not None and draws.chance(0.5)}


def any_axis(draws, rank):
    """An axis, counted from the front or from the back."""
    return draws.between(-rank, rank - 1)


def axes_of(draws, rank, count=None):
    count = draws.between(0 if rank == 0 else 1, rank) if count is None else count
    return [axis - rank if draws.chance(0.3) else axis for axis in draws.some(range(rank), count)]


def broadcast_to(draws, shape):
    """A shape that broadcasts to this one."""
    shape = [1 if draws.chance(0.25) else size for size in shape]
    return tuple(shape[draws.between(0, len(shape)) if draws.chance(0.3) else 0:])


def second(b, schema, shape):
    """The shape of a second input that goes with one of this shape, and the attributes that say how: before set 7 it is the
    same shape, or a part of it that begins at `axis`; else it broadcasts."""
    if not has(schema, "broadcast"):
        return broadcast_to(b.draws, shape), {}
    if b.draws.chance(0.3):
        return tuple(shape), given(b.draws, broadcast=0)
    if not shape or b.draws.chance(0.15):
        return b.draws.choose([(), (1,)] if shape else [()]), {"broadcast": 1}
    begin = b.draws.between(0, len(shape) - 1)
    end = b.draws.between(begin + 1, len(shape)) if b.draws.chance(0.6) else len(shape)
    return tuple(shape[begin:end]), {"broadcast": 1, **({"axis": begin} if end < len(shape) or b.draws.chance(0.5) else {})}
