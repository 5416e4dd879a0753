// SPDX-License-Identifier: Apache-2.0
// Random graphs that join, cut, view and overwrite tensors.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rewire/tests/compiler/model_builder.h"

namespace rewire::test {

// f32[rows, 16] throughout, or f32[rows, N, 512].
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed, bool symbolic = false)
      : random_(seed), symbolic_(symbolic), model_(EmptyModel()), graph_(*model_.mutable_graph()) {
    rows_["x"] = 1 + static_cast<std::int64_t>(Below(6));
    names_.emplace_back("x");
    const std::int64_t width = symbolic ? 512 : 16;
    std::vector<Dim> dims = {rows_["x"], width};
    if (symbolic) dims.insert(dims.begin() + 1, "N");
    SetValue(graph_.add_input(), "x", dims);
    if (symbolic) {
      AddFloats(&graph_, "w", {width}, std::vector<float>(512, 0.75F));
    } else {
      AddFloats(&graph_, "w", {width, width}, std::vector<float>(256, 0.0625F));
    }
    const std::size_t nodes = 6 + Below(20);
    for (std::size_t i = 0; i < nodes; ++i) AddRandomNode();
    for (const std::string& name : names_) {
      if (read_.contains(name) || outputs_ == 4) continue;
      ++outputs_;
      SetValue(graph_.add_output(), name, {});
    }
  }
  const onnx::ModelProto& model() const { return model_; }
  Shape input(std::int64_t n) const {
    return symbolic_ ? Shape{rows_.at("x"), n, 512} : Shape{rows_.at("x"), 16};
  }
  int outputs() const { return outputs_; }

 private:
  std::size_t Below(std::size_t limit) { return random_() % limit; }
  // One that was made lately, so that chains become long.
  std::string Pick() {
    const std::string& name = names_[names_.size() - 1 - Below(std::min<std::size_t>(names_.size(), 6))];
    read_.insert(name);
    return name;
  }
  std::string NewName(std::int64_t rows) {
    names_.push_back("v" + std::to_string(names_.size()));
    rows_[names_.back()] = rows;
    return names_.back();
  }
  std::string Ints(const std::vector<std::int64_t>& values) {
    std::string name = "i" + std::to_string(++constants_);
    AddInts(&graph_, name, values);
    return name;
  }

  void AddRandomNode() {
    const std::string from = Pick();
    const std::int64_t rows = rows_[from];
    switch (Below(7)) {
      case 0:
        AddNode(&graph_, Below(2) == 0 ? "Neg" : "Tanh", {from}, NewName(rows));
        return;
      case 1: {
        std::string other = Pick();
        if (rows_[other] != rows) other = from;
        AddNode(&graph_, "Add", {from, other}, NewName(rows));
        return;
      }
      case 2:
        AddNode(&graph_, symbolic_ ? "Mul" : "MatMul", {from, "w"}, NewName(rows));
        return;
      case 3: {
        std::vector<std::string> parts = {from};
        std::int64_t sum = rows;
        for (std::size_t i = 0; i <= Below(3); ++i) {
          parts.push_back(Pick());
          sum += rows_[parts.back()];
        }
        if (sum <= 64) AddInt(AddNode(&graph_, "Concat", parts, NewName(sum)), "axis", 0);
        return;
      }
      case 4: {
        if (rows == 1) return;
        const auto cut = static_cast<std::int64_t>(1 + Below(static_cast<std::size_t>(rows - 1)));
        const std::string first = NewName(cut);
        onnx::NodeProto* split = AddNode(&graph_, "Split", {from, Ints({cut, rows - cut})}, first);
        split->add_output(NewName(rows - cut));
        AddInt(split, "axis", 0);
        return;
      }
      case 5: {
        const auto begin = static_cast<std::int64_t>(Below(static_cast<std::size_t>(rows)));
        const std::int64_t end =
            begin + 1 + static_cast<std::int64_t>(Below(static_cast<std::size_t>(rows - begin)));
        AddNode(&graph_, "Slice", {from, Ints({begin}), Ints({end}), Ints({0})}, NewName(end - begin));
        return;
      }
      default: {
        AddNode(&graph_, "Reshape", {from, Ints({-1})}, from + ".flat" + std::to_string(++constants_));
        const std::string flat = graph_.node(graph_.node_size() - 1).output(0);
        const std::string back = symbolic_ ? Ints({rows, -1, 512}) : Ints({rows, 16});
        AddNode(&graph_, "Reshape", {flat, back}, NewName(rows));
      }
    }
  }

  std::mt19937 random_;
  bool symbolic_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_;
  std::vector<std::string> names_;
  std::map<std::string, std::int64_t> rows_;
  std::set<std::string> read_;
  int constants_ = 0;
  int outputs_ = 0;
};

}  // namespace rewire::test
