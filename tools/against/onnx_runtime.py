# SPDX-License-Identifier: Apache-2.0
"""The other side of vm-run --against: computes values of a model with ONNX Runtime. vm-run holds this text, starts it with
`python3 -c`, and talks to it over a socket, which is standard input.

A message is its size in eight bytes, then JSON. Where it has "names", .npy files follow, each with its size
in front: one for each of its "names". vm-run sends the inputs and gets the graph. Then each {"values": [name, ...]} is answered
by those that are arrays of numbers. An error is {"error"}, or {"missing"} for a package.
"""

import io
import json
import os
import signal
import sys


class Channel:
    """Messages over a socket; what the libraries print goes to standard error."""

    def __init__(self):
        self._file = os.dup(0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def _read(self, size):
        data = bytearray()
        while len(data) < size:
            part = os.read(self._file, min(size - len(data), 1 << 20))
            if not part:
                sys.exit(0)  # vm-run has ended
            data += part
        return bytes(data)

    def _write(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view[:1 << 20]):]

    def _receive_bytes(self):
        return self._read(int.from_bytes(self._read(8), "little"))

    def _send_bytes(self, data):
        self._write(len(data).to_bytes(8, "little"))
        self._write(data)

    def receive(self):
        """A message, and the arrays that follow it, by name."""
        import numpy
        message = json.loads(self._receive_bytes())
        names = message.get("names", [])
        return message, {name: numpy.load(io.BytesIO(self._receive_bytes()), allow_pickle=False) for name in names}

    def send(self, message, arrays=None):
        arrays = arrays or {}
        self._send_bytes(json.dumps({**message, "names": list(arrays)}).encode())
        if arrays:
            import numpy
        for array in arrays.values():
            file = io.BytesIO()
            numpy.save(file, array, allow_pickle=False)
            self._send_bytes(file.getbuffer())


def graphs_of(node):
    """The bodies of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def captured(graph):
    """What a body reads from outside of it."""
    made = {value.name for value in (*graph.input, *graph.initializer)}
    found = []
    for node in graph.node:
        found += [name for name in inputs_of(node) if name not in made]
        made.update(node.output)
    return found + [value.name for value in graph.output if value.name not in made]


def inputs_of(node):
    """All that a node reads, also inside its bodies."""
    names = [name for name in node.input if name]
    for graph in graphs_of(node):
        names += captured(graph)
    return list(dict.fromkeys(names))


def rename(graph, names):
    """Gives values of a body, and of the bodies inside it, other names."""
    for value in (*graph.output, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for field in (node.input, node.output):
            for i, name in enumerate(field):
                field[i] = names.get(name, name)
        for inner in graphs_of(node):
            rename(inner, names)


def is_table(result):
    """Whether it is a list of maps, which a program has as the rows of a tensor."""
    return isinstance(result, list) and bool(result) and all(isinstance(row, dict) for row in result)


class Model:
    """A model whose inner values can be asked for."""

    def __init__(self, path, feeds, onnx, runtime):
        self._onnx, self._runtime = onnx, runtime
        self._folder = os.path.dirname(os.path.abspath(path))
        self._proto = onnx.load(path, load_external_data=False)
        self._names = [value.name for value in self._proto.graph.output]
        known = {value.name for value in self._proto.graph.input}
        self._feeds = {name: array for name, array in feeds.items() if name in known}
        self._shown = {}  # the operator and the name of the model's node, of nodes that had to get another name
        self._take_branches()

    def _take_branches(self):
        """Puts the branch that is taken in place of each If, so that its values can be asked for."""
        graph = self._proto.graph
        self._used = {value.name for value in (*graph.input, *graph.initializer)}
        self._used.update(name for node in graph.node for name in node.output)
        while branching := [node for node in graph.node if node.op_type == "If" and node.domain in ("", "ai.onnx")]:
            conditions = {node.input[0] for node in branching}
            given = {tensor.name: self._onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer
                     if tensor.name in conditions}
            given.update((name, array) for name, array in self._feeds.items() if name in conditions)
            given.update(self.values([name for name in conditions if name not in given]))
            # One whose condition cannot be asked for, behind another If, is left to a later turn.
            ready = [node for node in branching if node.input[0] in given]
            if not ready:
                return
            nodes = []
            for node in graph.node:
                if any(node is other for other in ready):
                    nodes += self._branch(node, bool(given[node.input[0]].reshape(-1)[0]))
                else:
                    nodes.append(node)
            nodes = [type(node).FromString(node.SerializeToString()) for node in nodes]
            del graph.node[:]
            graph.node.extend(nodes)

    def _branch(self, node, taken):
        """The nodes of the branch that is taken."""
        wanted = "then_branch" if taken else "else_branch"
        body = next(attribute.g for attribute in node.attribute if attribute.name == wanted)
        graph = self._proto.graph
        own = [name for inner in body.node for name in inner.output] + [tensor.name for tensor in body.initializer]
        label = self._shown.get(node.name, ("If", node.name or node.output[0]))[1]
        names = {name: f"{name}@{label}" if name in self._used else name for name in own}
        rename(body, names)
        self._used.update(names.values())
        graph.initializer.extend(body.initializer)
        nodes = list(body.node)
        shown = [(inner.op_type, inner.name or (inner.output[0] if inner.output else "")) for inner in nodes]
        for inside, outside in zip(body.output, node.output):
            if outside:
                nodes.append(self._onnx.helper.make_node("Identity", [inside.name], [outside]))
                shown.append(("If", label))
        # Two nodes of a graph must not have the same name, but two branches may.
        for inner, what in zip(nodes, shown):
            inner.name = f"{len(self._shown)}@{label}"
            self._shown[inner.name] = what
        return nodes

    def _session(self, names):
        runtime = self._runtime
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        # So that a value is computed in the same way whichever others are asked for.
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", self._folder)
        graph = self._proto.graph
        before = len(graph.output)
        graph.output.extend(self._onnx.ValueInfoProto(name=name) for name in names if name not in self._names)
        try:
            return runtime.InferenceSession(self._proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        finally:
            del graph.output[before:]

    def graph(self):
        graph = self._proto.graph
        shown = {node.output[0]: self._shown.get(node.name, (node.op_type, node.name or node.output[0]))
                 for node in graph.node if node.output}
        nodes = [{"name": shown[node.output[0]][1], "op": shown[node.output[0]][0],
                  "inputs": inputs_of(node), "outputs": [name for name in node.output if name]}
                 for node in graph.node if node.output]
        constants = [tensor.name for tensor in (*graph.initializer, *(s.values for s in graph.sparse_initializer))]
        inputs = [value.name for value in graph.input if value.name not in constants or value.name in self._feeds]
        return {"nodes": nodes, "inputs": inputs, "constants": constants, "outputs": self._names}

    def values(self, names):
        """The arrays of numbers among these values."""
        import numpy
        if not names:
            return {}
        try:
            results = self._session(names).run(names, self._feeds)
        except Exception:
            if len(names) == 1:
                if names[0] in self._names:
                    raise
                return {}
            # One of them may be such as no output can be.
            return {name: array for one in names for name, array in self.values([one]).items()}
        results = [numpy.array([list(row.values()) for row in result], numpy.float32) if is_table(result) else result
                   for result in results]
        return {name: result for name, result in zip(names, results)
                if getattr(result, "dtype", None) is not None and result.dtype.kind in "fiub"}


def main():
    channel = Channel()
    try:
        import numpy  # noqa: F401
        import onnx
        import onnxruntime
    except ImportError as error:
        channel.send({"missing": error.name or str(error)})
        return
    # Ctrl-C ends both programs; this one says nothing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        _, feeds = channel.receive()
        model = Model(sys.argv[1], feeds, onnx, onnxruntime)
        channel.send(model.graph())
        while True:
            message, _ = channel.receive()
            channel.send({}, model.values(message["values"]))
    except Exception as error:  # whatever onnx and onnxruntime raise
        channel.send({"error": f"{type(error).__name__}: {error}"})


main()
