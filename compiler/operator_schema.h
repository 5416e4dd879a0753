// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/compiler/operator_schema.h>.
//
// OperatorSchema: what the compiler must know of an operator that it does not bring: an operator of any
// domain, which a kernel of the host or of a library computes.
//
//   rewire::OperatorSchema window;
//   window.domain = "com.acme";
//   window.name = "Window";
//   window.inputs = {{"x", {}, rewire::OperatorSchema::Shape{"N", "C"}}};
//   window.outputs = {{"y", "x", rewire::OperatorSchema::Shape{"ceil(N / stride)", "C"}}};
//   window.attributes = {{"stride", std::int64_t{1}}};
//   window.kernel = "acme.window";
//   options.operators.push_back(window);  // CompileOptions
//
// The same may stand in a JSON file. docs/own-operators.md explains both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rewire/base/export.h"
#include "rewire/base/status.h"

namespace rewire {

struct OperatorSchema {
  // The dimensions of a tensor. Of an input, each is a name for the size, or a number that it must have. Of
  // an output, each is an expression of such names, of attributes and of dimensions like `x[0]`. "rest..."
  // stands for any number of dimensions.
  using Shape = std::vector<std::string>;

  struct Input {
    std::string name;
    std::vector<std::string> dtypes = {};  // those that the kernel takes: "f32"; empty: all
    std::optional<Shape> shape = {};       // not set: any
    bool optional = false;                 // a node may leave it out; the kernel gets [0] in its place
    bool variadic = false;                 // the last one: any number of inputs, each as this one says
  };
  struct Output {
    std::string name;
    std::string dtype = {};  // "i64", or an input's name, whose dtype it has; empty: the first one's
    // Not set: that of the first input. If the kernel returns its outputs: any, of the rank that the model
    // declares for the value.
    std::optional<Shape> shape = {};
    // A packed function that computes the shape in each run: it gets what the kernel gets, with i64[rank] in
    // place of the outputs. "?" in `shape` stands for sizes that only it knows.
    std::string shape_function = {};
    bool variadic = false;  // the last one: as many outputs as the node has; the kernel returns them
  };
  struct Attribute {
    using Value =
        std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;
    std::string name;
    Value value;            // its type, and the default
    bool required = false;  // there is no default
  };
  // How attributes reach the kernel. kArguments: as tensors between inputs and outputs, in this order. An int
  // is i64[], a float f32[], a list i64[n] or f32[n], a string u8[n]. kFactory: the kernel is a factory
  // (vm/kernel/attributes.h). kNode: it is a factory that gets all attributes of the node, those that the
  // schema does not list too, and one named "onnx.node". That one is a string, the node in JSON
  // (docs/own-operators.md).
  enum class AttributesAs : std::uint8_t { kArguments, kFactory, kNode };

  std::string domain;
  std::string name;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Attribute> attributes;
  AttributesAs attributes_as = AttributesAs::kArguments;
  // The kernel makes its outputs itself, with shapes that show when it runs, and returns them: a tensor, or a
  // tuple of tensors if the node has several outputs. "?" stands for any size. dtypes and shapes are checked
  // in each run.
  bool returns = false;
  std::string kernel;  // the packed function; empty: DOMAIN.NAME
};

// Reads schemas from JSON. `what` names the text in messages. Errors: kInvalidArgument, with the place in it.
REWIRE_API Result<std::vector<OperatorSchema>> ParseOperatorSchemas(const std::string& json,
                                                                    const std::string& what);
// The same from a file. Errors: kNotFound and kIo, too.
REWIRE_API Result<std::vector<OperatorSchema>> ReadOperatorSchemas(const std::string& path);

}  // namespace rewire
