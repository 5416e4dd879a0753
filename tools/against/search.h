// SPDX-License-Identifier: Apache-2.0
//
// Finds the first value of a model that differs between two programs, without comparing all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tools/against/onnx_runtime.h"
#include "rewire/tools/run/compare.h"

namespace rewire::tools {

// The state of a value that a node reads. A constant is not compared: both programs have their own.
enum class InputState : std::uint8_t { kEqual, kModelInput, kConstant };

struct FirstDifference {
  std::string value;
  Comparison comparison;
  // One of these nodes is wrong: all between this value and the nearest ones before it that are equal. It is
  // one node if none of its inputs was fused away. Positions in OnnxGraph::nodes, in order.
  std::vector<std::size_t> nodes;
  struct Input {
    std::string name;
    InputState state;
    Comparison comparison;  // if it is equal
  };
  std::vector<Input> inputs;  // of these nodes, from outside of them
};

class DifferenceSearch {
 public:
  // Compares values in both programs. What cannot be compared is left out of the answer.
  using Compare =
      std::function<Result<std::map<std::string, Comparison>>(const std::vector<std::string>& names)>;

  // `comparable`: values that both programs have, with their bytes. Both arguments must outlive the search.
  DifferenceSearch(const OnnxGraph& graph, std::map<std::string, std::uint64_t> comparable, Compare compare);

  // Searches backwards from outputs that were compared, of which one differs. A value that is equal is a
  // border: what lies behind it matters only by other ways. So the answer differs while all that it is made
  // of is equal. In each round several values are compared, evenly spread over those in question.
  Result<FirstDifference> Find(const std::map<std::string, Comparison>& outputs);

  std::size_t compared() const { return known_.size(); }
  std::size_t rounds() const { return rounds_; }

 private:
  // The node that makes a value; the number of nodes for inputs and constants.
  std::size_t MakerOf(const std::string& value) const;
  // All nodes between a value and the nearest ones that are known; and the values in question between them.
  std::vector<std::size_t> Between(const std::string& value, std::vector<std::string>* in_question) const;
  // The earliest in the program of the values that differ.
  std::string EarliestDifference() const;
  // Some of the values, of which few bytes have to be kept at once.
  std::vector<std::string> Chosen(const std::vector<std::string>& in_question) const;
  FirstDifference Describe(const std::string& value, std::vector<std::size_t> nodes) const;

  const OnnxGraph& graph_;
  std::map<std::string, std::uint64_t> comparable_;
  const Compare compare_;
  std::map<std::string, std::size_t> makers_;
  std::map<std::string, Comparison> known_;
  std::size_t rounds_ = 0;
};

}  // namespace rewire::tools
