// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>

#include "rewire/executable_format/code_writer.h"
#include "rewire/tests/executable_format/bad_modules.h"

namespace rewire::test {
namespace {

// A fresh tensor in `dst`, with its storage in the register after it.
void Fresh(CodeWriter& c, std::uint32_t dst) {
  c.AllocStorage(kNone, 64, kFloat32, 0, dst + 1, {4});
  c.AllocTensor(dst + 1, kNone, kFloat32, dst, {4});
}

std::vector<BadModule> BadWrites() {
  const ModuleChange objects = [](Module& m) { m.kernels[0].flags = kKernelObjects; };
  const ModuleChange writes_first = [](Module& m) { m.kernels[0].also_written = {0}; };
  return {
      Emitted(
          "flow.outputs", [](CodeWriter& c) { c.InvokePacked(0, 2, kNone, {0}); },
          "main@0 (invoke_packed k(%x), outputs=2): it writes its last 2 arguments, it has 1"),
      Emitted(
          "flow.outputs/objects",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {0});
            c.InvokePacked(0, 2, kNone, {1});
          },
          "main@5 (invoke_packed k(%1), outputs=2): it writes its last 2 arguments, it has 1", objects),
      Emitted(
          "flow.also_written", [](CodeWriter& c) { c.InvokePacked(0, 0, kNone, {}); },
          "main@0 (invoke_packed k(), outputs=0): kernel 'k' writes its argument 0, the call has 0",
          writes_first),
      Emitted(
          "flow.written_kind",
          [](CodeWriter& c) {
            c.LoadConsti(1, 1);
            c.InvokePacked(0, 1, kNone, {0, 1});
          },
          "main@4 (invoke_packed k(%x, %1), outputs=1): written argument 1 is an integer (%1), expected a "
          "tensor"),
      Emitted(
          "flow.written_kind/objects",
          [](CodeWriter& c) {
            Fresh(c, 1);
            c.AllocADT(0, 3, {1});
            c.InvokePacked(0, 1, kNone, {0, 3});
          },
          "main@22 (invoke_packed k(%x, %3), outputs=1): written argument 1 is an ADT (%3), expected a "
          "tensor",
          objects),
      Emitted(
          "flow.read_only/constant",
          [](CodeWriter& c) {
            c.LoadConst(0, 1);
            c.InvokePacked(0, 1, kNone, {0, 1});
          },
          "main@3 (invoke_packed k(%x, %1), outputs=1): written argument 1 (%1) is read-only: a constant, an "
          "input of the function, or a view or field of one"),
      Emitted(
          "flow.read_only/parameter",
          [](CodeWriter& c) {
            c.LoadConst(0, 1);
            c.InvokePacked(0, 1, kNone, {0, 1});
          },
          "main@3 (invoke_packed k(%x, %1), outputs=1): written argument 1 (%1) is read-only: a constant, an "
          "input of the function, or a view or field of one",
          [](Module& m) {
            m.constants[0].kind = ConstantKind::kParameter;
            m.constants[0].stored = {};
            m.constants[0].raw_bytes = 0;
          }),
      Emitted(
          "flow.read_only/input", [](CodeWriter& c) { c.InvokePacked(0, 1, kNone, {0}); },
          "main@0 (invoke_packed k(%x), outputs=1): written argument 0 (%x) is read-only: a constant, an "
          "input of the function, or a view or field of one"),
      Emitted(
          "flow.read_only/not_the_last",
          [](CodeWriter& c) {
            Fresh(c, 1);
            c.InvokePacked(0, 2, kNone, {0, 1});
          },
          "main@17 (invoke_packed k(%x, %1), outputs=2): written argument 0 (%x) is read-only: a constant, "
          "an input of the function, or a view or field of one"),
      Emitted(
          "flow.read_only/move",
          [](CodeWriter& c) {
            c.Move(0, 1);
            c.InvokePacked(0, 1, kNone, {1});
          },
          "main@3 (invoke_packed k(%1), outputs=1): written argument 0 (%1) is read-only: a constant, an "
          "input of the function, or a view or field of one"),
      Emitted(
          "flow.read_only/view",
          [](CodeWriter& c) {
            c.LoadConst(0, 1);
            c.ShapeOf(1, 2);
            c.ReshapeTensor(1, 2, 3);
            c.InvokePacked(0, 1, kNone, {3});
          },
          "main@10 (invoke_packed k(%3), outputs=1): written argument 0 (%3) is read-only: a constant, an "
          "input of the function, or a view or field of one"),
      Emitted(
          "flow.read_only/field",
          [](CodeWriter& c) {
            c.LoadConst(0, 1);
            c.AllocADT(0, 2, {0, 1});
            c.GetField(2, 0, 3);
            c.InvokePacked(0, 1, kNone, {3});
          },
          "main@13 (invoke_packed k(%3), outputs=1): written argument 0 (%3) is read-only: a constant, an "
          "input of the function, or a view or field of one"),
      Emitted(
          "flow.read_only/every_path",
          [](CodeWriter& c) {
            auto one = c.NewLabel(), other = c.NewLabel(), both = c.NewLabel();
            c.If(0, 0, one, other);
            c.Bind(one);
            c.LoadConst(0, 1);
            c.Goto(both);
            c.Bind(other);
            c.Move(0, 1);
            c.Bind(both);
            c.InvokePacked(0, 1, kNone, {1});
          },
          "main@13 (invoke_packed k(%1), outputs=1): written argument 0 (%1) is read-only: a constant, an "
          "input of the function, or a view or field of one"),
      Emitted(
          "flow.read_only/also_written",
          [](CodeWriter& c) {
            Fresh(c, 1);
            c.InvokePacked(0, 1, kNone, {0, 1});
          },
          "main@17 (invoke_packed k(%x, %1), outputs=1): written argument 0 (%x) is read-only: a constant, "
          "an input of the function, or a view or field of one",
          writes_first),
  };
}

std::vector<BadModule> BadKinds() {
  return {
      Emitted(
          "flow.kind/argument",
          [](CodeWriter& c) {
            c.AllocStorage(kNone, 64, kFloat32, 0, 1, {4});
            c.InvokePacked(0, 0, kNone, {1});
          },
          "main@9 (invoke_packed k(%1), outputs=0): operand args is a storage (%1), expected an integer or a "
          "tensor or an ADT"),
      Emitted(
          "flow.kind/storage", [](CodeWriter& c) { c.AllocTensor(0, kNone, kFloat32, 1, {4}); },
          "main@0 (%1 = alloc_tensor %x, _, f32[4]): operand storage is a tensor (%x), expected a storage"),
      Emitted(
          "flow.kind/offset",
          [](CodeWriter& c) {
            c.AllocStorage(kNone, 64, kFloat32, 0, 1, {4});
            c.AllocTensor(1, 1, kFloat32, 2, {4});
          },
          "main@9 (%2 = alloc_tensor %1, %1, f32[4]): operand offset is a storage (%1), expected an integer "
          "or a tensor"),
      Emitted(
          "flow.kind/shape",
          [](CodeWriter& c) {
            c.AllocStorage(kNone, 64, kFloat32, 0, 1, {4});
            c.AllocTensorReg(1, kNone, 1, kFloat32, 2);
          },
          "main@9 (%2 = alloc_tensor_reg %1, _, %1, f32): operand shape is a storage (%1), expected an "
          "integer or a tensor"),
      Emitted(
          "flow.kind/size",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {});
            c.AllocStorage(1, 64, kFloat32, 0, 2, {});
          },
          "main@4 (%2 = alloc_storage %1, alignment=64, f32, cpu): operand size is an ADT (%1), expected an "
          "integer or a tensor"),
      Emitted(
          "flow.kind/closure", [](CodeWriter& c) { c.InvokeClosure(0, 1, {}); },
          "main@0 (%1 = invoke_closure %x()): operand closure is a tensor (%x), expected a closure"),
      Emitted(
          "flow.kind/object", [](CodeWriter& c) { c.GetField(0, 0, 1); },
          "main@0 (%1 = get_field %x, index=0): operand object is a tensor (%x), expected an ADT"),
      Emitted(
          "flow.kind/tag", [](CodeWriter& c) { c.GetTag(0, 1); },
          "main@0 (%1 = get_tag %x): operand object is a tensor (%x), expected an ADT"),
      Emitted(
          "flow.kind/test",
          [](CodeWriter& c) {
            auto next = c.NewLabel();
            c.AllocClosure(0, 1, {});
            c.If(1, 0, next, next);
            c.Bind(next);
          },
          "main@4 (if %1 == %x goto L9 else L9): operand test is a closure (%1), expected an integer or a "
          "tensor"),
      Emitted(
          "flow.kind/shape_of",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {});
            c.ShapeOf(1, 2);
          },
          "main@4 (%2 = shape_of %1): operand tensor is an ADT (%1), expected an integer or a tensor"),
      Emitted(
          "flow.kind/reshape",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {});
            c.ReshapeTensor(0, 1, 2);
          },
          "main@4 (%2 = reshape_tensor %x, %1): operand shape is an ADT (%1), expected an integer or a "
          "tensor"),
      Emitted(
          "flow.kind/copy",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {});
            c.DeviceCopy(1, 0, 0, 2);
          },
          "main@4 (%2 = device_copy %1, cpu, cpu): operand src is an ADT (%1), expected an integer or a "
          "tensor"),
      Emitted(
          "flow.kind/every_path",
          [](CodeWriter& c) {
            auto one = c.NewLabel(), other = c.NewLabel(), both = c.NewLabel();
            c.If(0, 0, one, other);
            c.Bind(one);
            c.AllocADT(0, 1, {});
            c.Goto(both);
            c.Bind(other);
            c.LoadConsti(0, 1);
            c.Bind(both);
            c.InvokeClosure(1, 2, {});
          },
          "main@15 (%2 = invoke_closure %1()): operand closure is an integer or an ADT (%1), expected a "
          "closure"),
      Emitted(
          "flow.argument",
          [](CodeWriter& c) {
            c.Invoke(1, 1, {0, 0});
          },
          "main@0 (%1 = invoke helper(%x, %x)): argument 1 is a tensor (%x), input 's' of 'helper' is "
          "storage"),
      Emitted(
          "flow.argument/captured",
          [](CodeWriter& c) {
            c.AllocStorage(kNone, 64, kFloat32, 0, 1, {4});
            c.AllocClosure(1, 2, {1});
          },
          "main@9 (%2 = alloc_closure helper(%1)): argument 0 is a storage (%1), input 'a' of 'helper' is "
          "f32[4]"),
      Emitted(
          "flow.argument/integer",
          [](CodeWriter& c) {
            c.LoadConsti(0, 1);
            c.Invoke(0, 1, {1});
          },
          "main@4 (%1 = invoke main(%1)): argument 0 is an integer (%1), input 'x' of 'main' is f32[4]"),
      Emitted(
          "flow.result",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {0});
            c.Ret(1);
          },
          "main@5 (ret %1): the result is an ADT (%1), the signature says f32[4]"),
  };
}

}  // namespace

std::vector<BadModule> BadFlow() {
  std::vector<BadModule> bad = {
      Emitted(
          "flow.undefined", [](CodeWriter& c) { c.Move(1, 2); },
          "main@0 (%2 = move %1): register %1 is undefined"),
      Emitted(
          "flow.undefined/killed",
          [](CodeWriter& c) {
            c.Kill(0);
            c.ShapeOf(0, 1);
          },
          "main@2 (%1 = shape_of %x): register %x is undefined"),
      Emitted(
          "flow.undefined/field",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {0, 2});
          },
          "main@0 (%1 = alloc_adt tag=0 (%x, %2)): register %2 is undefined"),
      Emitted(
          "flow.undefined/argument",
          [](CodeWriter& c) {
            c.InvokePacked(0, 0, kNone, {0, 2});
          },
          "main@0 (invoke_packed k(%x, %2), outputs=0): register %2 is undefined"),
      Emitted(
          "flow.undefined/result", [](CodeWriter& c) { c.Ret(3); },
          "main@0 (ret %3): register %3 is undefined"),
      Emitted(
          "flow.undefined/one_path",
          [](CodeWriter& c) {
            auto one = c.NewLabel(), both = c.NewLabel();
            c.If(0, 0, one, both);
            c.Bind(one);
            c.LoadConsti(1, 1);
            c.Bind(both);
            c.Move(1, 2);
          },
          "main@9 (%2 = move %1): register %1 is undefined on some path to here"),
      Emitted(
          "flow.undefined/one_path_to_an_operand",
          [](CodeWriter& c) {
            auto one = c.NewLabel(), both = c.NewLabel();
            c.If(0, 0, one, both);
            c.Bind(one);
            c.LoadConsti(1, 1);
            c.Bind(both);
            c.ShapeOf(1, 2);
          },
          "main@9 (%2 = shape_of %1): register %1 is undefined on some path to here"),
      Emitted(
          "flow.undefined/second_round",
          [](CodeWriter& c) {
            auto again = c.NewLabel(), done = c.NewLabel();
            c.LoadConsti(1, 1);
            c.Bind(again);
            c.Move(1, 2);
            c.Kill(1);
            c.If(0, 0, done, again);
            c.Bind(done);
          },
          "main@4 (%2 = move %1): register %1 is undefined on some path to here"),
      Emitted(
          "limit.verifier_state", [](CodeWriter& c) { (void)c; },
          "'main' has 1 jump targets and 8 registers, 8 bytes of state to verify; the limit is 7"),
      Emitted(
          "limit.verifier_steps", [](CodeWriter& c) { (void)c; },
          "verifying takes 82 units of work or more, the limit is 1; raise FormatLimits::verifier_steps if "
          "the "
          "file may take more"),
      Emitted(
          "init.computed", [](CodeWriter& c) { c.LoadConst(1, 1); },
          "main@0 (%1 = load_const #1): '__init' runs this, and is to compute constant 1",
          [](Module& m) {
            Constant computed;
            computed.kind = ConstantKind::kComputed;
            computed.type = TensorType(kFloat32, {4}).nodes[0];
            computed.raw_bytes = 16;
            m.constants.push_back(computed);
            CodeWriter code;
            code.LoadConst(0, 0);
            code.Invoke(0, 0, {0});
            code.AllocADT(0, 0, {0});
            code.Ret(0);
            Function init;
            init.name = kInitFunction;
            init.result = AdtType(0, {TensorType(kFloat32, {4})});
            init.output_names = {"c"};
            init.register_count = 1;
            init.code = *code.Finish();
            m.functions.push_back(init);
          }),
  };
  for (BadModule& one : bad) {
    if (one.name == "limit.verifier_state") one.limits.verifier_state = 7;
    if (one.name == "limit.verifier_steps") one.limits.verifier_steps = 1;
  }
  for (BadModule& more : BadKinds()) bad.push_back(std::move(more));
  for (BadModule& more : BadWrites()) bad.push_back(std::move(more));
  return bad;
}

}  // namespace rewire::test
