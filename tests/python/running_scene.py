# SPDX-License-Identifier: Apache-2.0
"""One object of each class of the package, and a kernel that calls something while its run goes on."""

import numpy
import onnx
import rewire
import rewire.backend
import rewire.tvm
import tiny_models as models
from rewire import inference_session

PROGRAM = """
.param w: f32[4]
.kernel gate = "host.gate"
.kernel add = "rewire.add"
.func main(x: f32[4]) -> y: f32[4]
  %w = load_const w
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %t = alloc_tensor %s, _, f32[4]
  invoke_packed gate(%x, %t), outputs=1
  %u = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %u, _, f32[4]
  invoke_packed add(%t, %w, %y), outputs=1
  ret %y
.end
"""
X = numpy.arange(4, dtype=numpy.float32)
W = numpy.full(4, 10, numpy.float32)
Y = X + W


def gated_model():
    """The same in ONNX."""
    nodes = [onnx.helper.make_node("gate", ["x"], ["t"], domain="rewire.host"), onnx.helper.make_node("Add", ["t", "w"], ["y"])]
    made = models.model(nodes, [("x", onnx.TensorProto.FLOAT, (4,))], [("y", onnx.TensorProto.FLOAT, (4,))], [("w", W)])
    made.opset_import.append(onnx.helper.make_opsetid("rewire.host", 1))
    return made.SerializeToString()


class Gate:
    """A kernel. The first call does what it is told while its run goes on; the others copy."""

    def __init__(self):
        self.meanwhile = None

    def __call__(self, x, out):
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        out[...] = x


class Scene:
    """One of each class, all of them of programs with the gate."""

    def __init__(self, monkeypatch, folder):
        self.gate, self.folder = Gate(), folder
        kernels = {"host.gate": self.gate}
        self.weights = rewire.ParameterSet.from_arrays({"w": W.copy()})
        self.program = rewire.load(rewire.assemble(PROGRAM), kernels=kernels, parameters=self.weights)
        self.x = X.copy()
        self.executable = self.program.executable
        self.executable.save(folder / "program.rwx")
        self.tensor = rewire.tensor(self.x)
        self.adt = rewire.Adt(3, [self.x, 7])
        self.kernel = rewire.Kernel("mine", lambda *args: args)
        self.vm = self.program.vm()
        self.vm.set_input("x", self.x)
        self.tvm = rewire.tvm.VirtualMachine(self.program)
        self.tvm.set_input("main", self.x)
        self.device = rewire.tvm.cpu()
        self.value = rewire.OrtValue(self.x)
        self.model = gated_model()
        monkeypatch.setattr(inference_session, "load", lambda *args, **options: rewire.load(*args, kernels=kernels, **options))
        self.session = rewire.InferenceSession(self.model, rewire.SessionOptions())
        self.binding = self.session.io_binding()
        self.binding.bind_cpu_input("x", self.x)
        self.binding.bind_output("y")
        self.rep = rewire.backend.BackendRep(self.program)

    def by_machine(self):
        self.vm.invoke()
        return self.vm.output("y")

    def by_tvm(self):
        return self.tvm.run()

    def by_binding(self):
        self.session.run_with_iobinding(self.binding)
        return self.binding.copy_outputs_to_cpu()[0]

    def by_call(self):
        return self.program(self.x)["y"]
