# SPDX-License-Identifier: Apache-2.0
"""One scenario of random calls: rows [function, arguments, result], which depend on the random numbers and the library alone."""
import copy
import ctypes

import numpy as np

import models
from calls import NUMBERS, STRING, TENSOR, Failed, Generated, Library, Pointer, Size

__all__ = ["Library", "run"]
OPTION_CALLS = 3
RUNS = 4
GENERATED = 25


class Scenario:
    def __init__(self, library, random):
        self.library, self.random = library, random
        self.generated = Generated(library, random)
        self.kept = []  # memory of values
        self.case, self.model = models.build(random)

    def attempt(self, name, said, work):
        """A row of what `work` gives, or of how it fails."""
        try:
            return [name, said, work()]
        except Failed as failed:
            return [name, said, ["failed", failed.code, str(failed)]]

    def open(self):
        library = self.library
        options = library.make("CreateSessionOptions")
        library.call("SetIntraOpNumThreads", options, ctypes.c_int(1))
        self.generated.add("OrtSessionOptions", options)
        held = ctypes.create_string_buffer(self.model, len(self.model))
        session = library.make("CreateSessionFromArray", library.env, held, Size(len(self.model)), options)
        self.generated.add("OrtSession", session)
        self.session = session
        return True

    def ports(self):
        library = self.library
        found = []
        for what in ("Input", "Output", "OverridableInitializer"):
            for i in range(library.make(f"SessionGet{what}Count", self.session, kind=Size).value):
                name = library.text(library.make(f"SessionGet{what}Name", self.session, Size(i), library.allocator))
                info = library.make(f"SessionGet{what}TypeInfo", self.session, Size(i))
                self.generated.add("OrtTypeInfo", info)
                described = library.describe_type(info)
                if what == "Output" and described[0] == TENSOR:  # the compilers infer different parts of a shape
                    described = described[1][0]
                found.append([what, name, described])
        return found

    def value(self, given):
        value, kept = self.library.value_of(given)
        self.kept.append(kept)
        self.generated.add("OrtValue", value)
        return value

    def wrong(self, feeds):
        """Changes what is given in one way, and says which."""
        random = self.random
        name = random.choice(sorted(feeds))
        given = feeds[name]
        ways = ["unknown", "twice", "missing"]
        if not isinstance(given, list):
            ways += ["dtype", "dim", "dim", "sequence", "rank" if given.ndim else "scalar"]
        way = random.choice(ways)
        names = list(feeds)
        values = dict(feeds)
        if way == "missing":
            names.remove(name)
        elif way == "unknown":
            names.append("nowhere")
            values["nowhere"] = np.zeros(1, np.float32)
        elif way == "twice":
            names.append(name)
        elif way == "dtype":
            values[name] = models.elements(random, random.choice([each for each in NUMBERS if each != given.dtype.name]), list(given.shape))
        elif way in ("rank", "scalar"):  # ONNX Runtime takes a scalar of any rank
            values[name] = given.reshape((1, *given.shape))
        elif way == "dim" and given.ndim:
            shape = list(given.shape)
            shape[random.randrange(len(shape))] += 1
            values[name] = models.elements(random, "string" if given.dtype == object else given.dtype.name, shape)
        elif way == "sequence":
            values[name] = [np.zeros(2, np.float32)]
        return f"{way} {name}", names, values

    def run_once(self):
        library, random = self.library, self.random
        feeds = models.feeds(random, self.case)
        way, names, values = ("right", list(feeds), feeds) if random.random() < 0.55 or not feeds else self.wrong(feeds)
        wanted = [each[0] for each in self.case.outputs]
        draw = random.random()
        if draw < 0.1:
            wanted.append(random.choice((wanted[0], "nowhere")))
        elif draw < 0.15:
            wanted = []
        given = [None] * len(wanted)
        if wanted and random.random() < 0.3:
            shape = random.choice(([2], [], [2, 2], list(getattr(next(iter(feeds.values()), None), "shape", [1]))))
            dtype = random.choice(("float32", "int64", "string", self.case.inputs[0].dtype if self.case.inputs else "float32"))
            given[0] = models.elements(random, dtype, shape)
        bound = random.random() < 0.25 and wanted and "nowhere" not in wanted and len(set(wanted)) == len(wanted)
        said = [self.case.op, way, names, wanted, None if not given or given[0] is None else [str(given[0].dtype), list(given[0].shape)],
                "bound" if bound else "run"]
        handles = [self.value(values[name]) for name in names]
        outputs = [Pointer() if each is None else self.value(each) for each in given]

        def bind():
            binding = library.make("CreateIoBinding", self.session)
            self.generated.add("OrtIoBinding", binding)
            for name, handle in zip(names, handles):
                library.call("BindInput", binding, name.encode(), handle)
            for name, handle in zip(wanted, outputs):
                if handle.value:
                    library.call("BindOutput", binding, name.encode(), handle)
                else:
                    library.call("BindOutputToDevice", binding, name.encode(), library.memory)
            library.call("RunWithBinding", self.session, None, binding)
            made, count = Pointer(), Size()
            library.call("GetBoundOutputValues", binding, library.allocator, ctypes.byref(made), ctypes.byref(count))
            values = ctypes.cast(made, ctypes.POINTER(Pointer))
            return [library.describe_value(Pointer(values[i])) for i in range(count.value)]

        def plain():
            made = (Pointer * max(1, len(outputs)))(*[each.value for each in outputs])
            inputs = (Pointer * max(1, len(handles)))(*[each.value for each in handles])
            library.call("Run", self.session, None, (ctypes.c_char_p * max(1, len(names)))(*[name.encode() for name in names]), inputs, Size(len(names)),
                         (ctypes.c_char_p * max(1, len(wanted)))(*[name.encode() for name in wanted]), Size(len(wanted)), made)
            for place, value in enumerate(made[:len(outputs)]):
                if not outputs[place].value:
                    self.generated.add("OrtValue", Pointer(value))
            return [library.describe_value(Pointer(value)) for value in made[:len(outputs)]]

        return self.attempt("Run", said, bind if bound else plain)

    def values(self):
        """Calls with arrays, on tensors that are made here."""
        library, random = self.library, self.random
        shape = models.shape_of(random)
        count = int(np.prod(shape, dtype=np.int64))
        dtype = random.choice(list(NUMBERS))
        dims = (ctypes.c_int64 * len(shape))(*shape)
        yield self.attempt("CreateTensorAsOrtValue", [dtype, shape], lambda: self.made(
            library.make("CreateTensorAsOrtValue", library.allocator, dims, Size(len(shape)), ctypes.c_int(NUMBERS[dtype])), dtype))
        size = random.choice((0, 4, 8, 1000))
        memory = ctypes.create_string_buffer(1024)
        self.kept.append(memory)
        yield self.attempt("CreateTensorWithDataAsOrtValue", [dtype, shape, size], lambda: self.made(
            library.make("CreateTensorWithDataAsOrtValue", library.memory, memory, Size(size), dims, Size(len(shape)), ctypes.c_int(NUMBERS[dtype])), dtype))
        texts = [random.choice(models.TEXTS).encode() for _ in range(random.choice((count, count, count + 1)))]

        def fill():
            value = library.make("CreateTensorAsOrtValue", library.allocator, dims, Size(len(shape)), ctypes.c_int(STRING))
            self.generated.add("OrtValue", value)
            library.call("FillStringTensor", value, (ctypes.c_char_p * max(1, len(texts)))(*texts), Size(len(texts)))
            return library.describe_value(value)

        yield self.attempt("FillStringTensor", [shape, len(texts)], fill)
        kinds = [random.choice((dtype, dtype, "float32")) for _ in range(random.randint(1, 3))]
        parts = [self.value(models.elements(random, kind, models.shape_of(random, 1))) for kind in kinds]
        form = random.choice((0, 1, 2, 2, 2, 3, 4))
        yield self.attempt("CreateValue", [kinds, form], lambda: self.made(library.make(
            "CreateValue", (Pointer * len(parts))(*[each.value for each in parts]), Size(len(parts)), ctypes.c_int(form)), "value", describe=True))
        given = random.choice((np.array(["a", "bc"], object), np.array([1, 2], np.int64)))
        value = self.value(given)
        index, room = random.choice((0, 1, 2, 9)), random.choice((0, 1, 2, 10))
        text = ctypes.create_string_buffer(16)
        yield self.attempt("GetStringTensorElement", [str(given.dtype), index, room], lambda: [
            library.call("GetStringTensorElement", value, Size(room), Size(index), text), text.value.decode()])

    def made(self, value, dtype, describe=False):
        self.generated.add("OrtValue", value)
        return self.library.describe_value(value) if describe or dtype == "string" else True


def run(library, random):
    scenario = Scenario(library, random)
    row = scenario.attempt("CreateSessionFromArray", [scenario.case.op, [[port.dtype, port.shape] for port in scenario.case.inputs]], scenario.open)
    yield row
    if row[2] is not True:
        return
    yield scenario.attempt("ports", [], scenario.ports)
    for _ in range(RUNS):
        yield scenario.run_once()
    yield from scenario.values()
    for _ in range(GENERATED):
        step = scenario.generated.step()
        if step is not None:
            yield copy.deepcopy(step)
    for kind, handle in reversed(scenario.generated.owned):
        library.release(kind.removeprefix("Ort"), handle)
