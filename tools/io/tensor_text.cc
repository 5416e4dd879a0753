// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/element_text.h"

namespace rewire::tools {
namespace {

constexpr std::int64_t kGap = -1;  // stands for the elements left out

// The indices of one dimension that are printed.
std::vector<std::int64_t> ShownIndices(std::int64_t size, std::int64_t edge, bool summarize) {
  std::vector<std::int64_t> shown;
  const bool cut = summarize && size > 2 * edge;
  for (std::int64_t i = 0; i < size; ++i) {
    if (cut && i == edge) {
      shown.push_back(kGap);
      i = size - edge;
    }
    shown.push_back(i);
  }
  return shown;
}

std::string Element(const HostTensor& tensor, std::int64_t index, const TensorTextOptions& options) {
  const std::byte* element =
      tensor.bytes.view.data() + static_cast<std::size_t>(index) * ElementBytes(tensor.dtype);
  if (options.element && tensor.dtype == kInt64) {
    std::int64_t value = 0;
    std::memcpy(&value, element, sizeof(value));
    return options.element(value);
  }
  if (tensor.dtype.code == kFloat || tensor.dtype.code == kBFloat) {
    return fmt::format("{:.{}g}", text::ElementValue(tensor.dtype, element), options.digits);
  }
  std::string text = text::ElementText(tensor.dtype, element);
  return text.empty() ? "?" : text;
}

// Walks the shown elements in order, calling visit(indices, position in the dimension lists, flat index or
// kGap). A gap in an outer dimension is visited once.
class ShownElements {
 public:
  ShownElements(const HostTensor& tensor, const TensorTextOptions& options, bool summarize) {
    std::int64_t stride = 1;
    lists_.resize(tensor.shape.size());
    strides_.resize(tensor.shape.size());
    for (std::size_t d = tensor.shape.size(); d-- > 0;) {
      lists_[d] = ShownIndices(tensor.shape[d], options.edge, summarize);
      strides_[d] = stride;
      stride *= tensor.shape[d];
    }
  }

  // visit(first_changed, depth, flat): dimensions from first_changed to depth - 1 start anew here; depth is
  // the rank for an element, less for a gap in an outer dimension.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    const std::size_t rank = lists_.size();
    std::vector<std::size_t> at(rank, 0);
    std::size_t changed = 0;
    for (;;) {
      std::int64_t flat = 0;
      std::size_t depth = rank;
      for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t index = lists_[d][at[d]];
        if (index == kGap) {
          depth = d + 1;
          flat = kGap;
          break;
        }
        flat += index * strides_[d];
      }
      visit(changed, depth, flat);
      std::size_t d = depth;
      while (d > 0 && at[d - 1] + 1 == lists_[d - 1].size()) --d;
      if (d == 0) return;
      ++at[d - 1];
      std::fill(at.begin() + static_cast<std::ptrdiff_t>(d), at.end(), 0);
      changed = d;
    }
  }

 private:
  std::vector<std::vector<std::int64_t>> lists_;
  std::vector<std::int64_t> strides_;
};

}  // namespace

std::string TensorText(const HostTensor& tensor, const TensorTextOptions& options) {
  if (!text::HasElementText(tensor.dtype)) return "(elements of this dtype are not printed)";
  const std::size_t rank = tensor.shape.size();
  const std::int64_t count = static_cast<std::int64_t>(tensor.bytes.view.size() / ElementBytes(tensor.dtype));
  if (count == 0) return "[]";
  if (rank == 0) return Element(tensor, 0, options);

  const ShownElements shown(tensor, options, count > options.threshold);
  std::vector<std::string> elements;
  std::size_t width = 0;
  shown.ForEach([&](std::size_t, std::size_t, std::int64_t flat) {
    elements.push_back(flat == kGap ? "..." : Element(tensor, flat, options));
    if (flat != kGap) width = std::max(width, elements.back().size());
  });

  // `changed` dimensions stay open from one element to the next; the others close and open again.
  std::string text;
  std::size_t open = 0;
  std::size_t next = 0;
  shown.ForEach([&](std::size_t changed, std::size_t depth, std::int64_t flat) {
    if (next > 0) {
      text.append(open - changed, ']');
      text += ',';
      if (changed == rank) {
        text += ' ';
      } else {
        // A blank line between matrices, as numpy has it.
        text.append(rank - changed, '\n');
        text.append(changed, ' ');
      }
      open = changed;
    }
    text.append(depth - open, '[');
    open = depth;
    const std::string& element = elements[next++];
    if (flat != kGap) text.append(width - element.size(), ' ');
    text += element;
  });
  text.append(open, ']');
  return text;
}

std::string ValueText(const Value& value) {
  constexpr int kMostNodes = 100;
  // The rest that is still to be printed, innermost last; a piece of text or a value.
  std::vector<std::pair<std::string, Value>> rest;
  rest.emplace_back("", value);
  std::string text;
  int nodes = 0;
  while (!rest.empty()) {
    auto [piece, node] = std::move(rest.back());
    rest.pop_back();
    text += piece;
    if (!piece.empty()) continue;
    if (++nodes > kMostNodes) return text + "...";
    switch (node.kind()) {
      case ValueKind::kTensor: {
        const Tensor tensor = node.tensor();
        text += TensorTypeText(tensor.dtype(), tensor.shape());
        break;
      }
      case ValueKind::kInteger:
        text += std::to_string(node.integer());
        break;
      case ValueKind::kAdt:
        text += fmt::format("adt {} (", node.tag());
        rest.emplace_back(")", Value());
        // No more of a wide node is taken than can be printed.
        for (std::uint32_t i = std::min<std::uint32_t>(node.field_count(), kMostNodes); i-- > 0;) {
          rest.emplace_back("", node.field(i));
          if (i > 0) rest.emplace_back(", ", Value());
        }
        break;
      case ValueKind::kNone:
      case ValueKind::kClosure:
      case ValueKind::kStorage:
        text += ValueKindName(node.kind());
        break;
    }
  }
  return text;
}

}  // namespace rewire::tools
