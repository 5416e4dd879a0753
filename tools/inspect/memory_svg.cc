// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/memory_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "rewire/base/utf8.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

constexpr double kPictureWidth = 1000, kChart = 320, kHead = 44, kFoot = 24, kMargin = 10;  // pixels
constexpr const char kSvgStyle[] = R"(<style>
  text { font: 13px system-ui, sans-serif; fill: #1d2530; }
  .small { font-size: 11px; fill: #5b6675; }
  .page { fill: #ffffff; }
  .storage { fill: #eef2f7; stroke: #a7b1bf; }
  .tensor { stroke: #ffffff; stroke-width: 0.5; fill-opacity: 0.8; }
  .bound { stroke: #d1381f; stroke-dasharray: 6 4; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e9f0; }
    .small { fill: #9aa6b5; }
    .page { fill: #1a2029; }
    .storage { fill: #262e3a; stroke: #566274; }
    .tensor { stroke: #1a2029; }
    .bound { stroke: #ff6b4a; }
  }
</style>
)";
constexpr std::array<const char*, 8> kColors = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759",
                                                "#b07aa1", "#76b7b2", "#edc948", "#9c755f"};

// XML takes UTF-8 without control characters, and names may hold any bytes.
std::string EscapedForXml(const std::string& text) {
  const bool valid = IsUtf8(text);
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !valid)) {
      escaped += '?';
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void DrawPlan(const PlannedFunction& function, double top, std::string* svg) {
  const MemoryPlan& plan = function.plan;
  const bool bounded = function.bound.bounded();
  const std::uint64_t bound = bounded ? function.bound.bytes : 0;
  const double most = static_cast<double>(std::max<std::uint64_t>({plan.height, bound, 1})) * 1.02;
  const auto x = [&](std::uint32_t step) {
    return kMargin + step * (kPictureWidth - 2 * kMargin) / std::max(1U, plan.steps);
  };
  const auto y = [&](std::uint64_t bytes) {
    return top + kHead + kChart * (1 - static_cast<double>(bytes) / most);
  };
  std::size_t color = 0;
  for (const MemoryBlock& block : plan.blocks) {
    const double bottom = y(block.address), height = std::max(0.7, bottom - y(block.address + block.bytes));
    const std::string look =
        block.is_storage ? R"(class="storage")"
                         : fmt::format(R"(class="tensor" fill="{}")", kColors[color++ % kColors.size()]);
    *svg += fmt::format(
        "<rect {} x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"><title>{} {}\n{} at offset "
        "{}\n"
        "instructions {} to {}</title></rect>\n",
        look, x(block.from), bottom - height, std::max(0.7, x(block.to) - x(block.from)), height,
        block.is_storage ? "storage" : "tensor", EscapedForXml(block.name), BytesText(block.bytes),
        BytesText(block.address), block.from, block.to);
  }
  if (bounded) {
    *svg += fmt::format("<line class=\"bound\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.2f}\" y2=\"{2:.2f}\"/>\n",
                        kMargin, kPictureWidth - kMargin, y(bound));
  }
  *svg += fmt::format("<text class=\"small\" x=\"{}\" y=\"{}\">{} instructions, from left to right</text>\n",
                      kMargin, top + kHead + kChart + 15, plan.steps);
}

}  // namespace

std::string MemorySvg(const std::vector<PlannedFunction>& functions) {
  std::string drawings;
  double top = 0;
  for (const PlannedFunction& function : functions) {
    const MemoryPlan& plan = function.plan;
    const std::string bound =
        function.bound.bounded()
            ? fmt::format("a run of a new VM holds at most {} (broken line)", BytesText(function.bound.bytes))
            : "no bound: " + function.bound.unbounded;
    const std::string what =
        plan.unknown.empty()
            ? fmt::format("tensors in storages of {}; {}", BytesText(plan.height), bound)
            : fmt::format("no picture: {}; vm-run --report draws the memory of a run", plan.unknown);
    drawings += fmt::format(
        "<text x=\"{0}\" y=\"{1}\">{2}</text>\n<text class=\"small\" x=\"{0}\" y=\"{3}\">{4}</text>\n",
        kMargin, top + 18, EscapedForXml(function.name), top + 36, EscapedForXml(what));
    if (plan.unknown.empty()) {
      DrawPlan(function, top, &drawings);
      top += kChart + kFoot;
    }
    top += kHead + kMargin;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n"
      "{2}<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n{3}</svg>\n",
      kPictureWidth, top, kSvgStyle, drawings);
}

}  // namespace rewire::tools
