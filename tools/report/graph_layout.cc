// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/report/graph_layout.h"

#include <fmt/format.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

namespace rewire::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kPixelsPerInch = 72;
constexpr double kGapAcross = 24, kGapDown = 48;  // of the plain layout

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string DotProgram(const GraphPicture& picture) {
  // For large graphs the best ranks would take minutes; these are nearly as good.
  const char* effort = picture.boxes.size() > 300 ? "nslimit=2, nslimit1=2, mclimit=0.3, " : "";
  std::string text = fmt::format("digraph g {{\ngraph [{}ranksep=0.45, nodesep=0.25];\n", effort);
  text += "node [shape=box, fixedsize=true, label=\"\"];\nedge [arrowhead=none];\n";
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    text += fmt::format("{} [width={:.3f}, height={:.3f}];\n", i, picture.boxes[i].width / kPixelsPerInch,
                        picture.boxes[i].height / kPixelsPerInch);
  }
  for (const GraphLine& line : picture.lines) text += fmt::format("{} -> {};\n", line.from, line.to);
  return text + "}\n";
}

// Runs `dot -Tplain`. Returns its output, or sets `why` if there is none.
std::optional<std::string> RunDot(const std::string& program, std::chrono::milliseconds patience,
                                  std::string* why) {
  const File input(std::tmpfile()), output(std::tmpfile());
  if (input == nullptr || output == nullptr ||
      std::fwrite(program.data(), 1, program.size(), input.get()) != program.size() ||
      std::fflush(input.get()) != 0) {
    *why = fmt::format("no temporary file can be written: {}", std::strerror(errno));
    return std::nullopt;
  }
  std::rewind(input.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(input.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(output.get()), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
  std::array<std::string, 2> words = {"dot", "-Tplain"};
  std::array<char*, 3> arguments = {words[0].data(), words[1].data(), nullptr};
  pid_t child = -1;
  const int failed = posix_spawnp(&child, "dot", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    *why = fmt::format("the program `dot` of Graphviz cannot be started: {}", std::strerror(failed));
    return std::nullopt;
  }
  const Clock::time_point last = Clock::now() + patience;
  int how = 0;
  while (waitpid(child, &how, WNOHANG) == 0) {
    if (Clock::now() > last) {
      kill(child, SIGKILL);
      waitpid(child, &how, 0);
      *why = fmt::format("`dot` of Graphviz took longer than {} s", patience.count() / 1000);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
    *why = "`dot` of Graphviz failed";
    return std::nullopt;
  }
  std::rewind(output.get());
  std::string text;
  std::array<char, 1 << 16> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), output.get()))
    text.append(part.data(), got);
  return text;
}

// The format "plain" of Graphviz: lines "graph SCALE WIDTH HEIGHT", "node NAME X Y ...", and
// "edge TAIL HEAD N X1 Y1 ... XN YN ..."; inches from the lower left corner.
bool ReadPlain(const std::string& text, GraphPicture* picture) {
  std::map<std::pair<std::size_t, std::size_t>, GraphLine*> lines;
  for (GraphLine& line : picture->lines) lines[{line.from, line.to}] = &line;
  std::istringstream in(text);
  const auto read_point = [&](GraphPoint* point) {
    in >> point->x >> point->y;
    point->x *= kPixelsPerInch;
    point->y = picture->height - point->y * kPixelsPerInch;
  };
  std::size_t placed = 0;
  for (std::string word, rest; in >> word && word != "stop"; std::getline(in, rest)) {
    if (word == "graph") {
      double scale = 1;
      in >> scale >> picture->width >> picture->height;
      picture->width *= kPixelsPerInch;
      picture->height *= kPixelsPerInch;
    } else if (word == "node") {
      std::size_t index = 0;
      in >> index;
      if (!in || index >= picture->boxes.size()) return false;
      read_point(&picture->boxes[index].center);
      ++placed;
    } else if (word == "edge") {
      std::pair<std::size_t, std::size_t> ends;
      std::size_t count = 0;
      in >> ends.first >> ends.second >> count;
      const auto line = lines.find(ends);
      if (!in || line == lines.end() || count > text.size()) return false;
      line->second->points.resize(count);
      for (GraphPoint& point : line->second->points) read_point(&point);
    }
    if (!in) return false;
  }
  return placed == picture->boxes.size();
}

void PlaceInLayers(GraphPicture* picture) {
  std::vector<std::size_t> layers(picture->boxes.size(), 0);
  std::vector<GraphLine> forwards = picture->lines;
  std::sort(forwards.begin(), forwards.end(),
            [](const GraphLine& a, const GraphLine& b) { return a.from < b.from; });
  for (const GraphLine& line : forwards) {
    if (line.from < line.to) layers[line.to] = std::max(layers[line.to], layers[line.from] + 1);
  }
  std::vector<GraphPoint> ends;  // of each layer: where the next box goes, and the height
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] >= ends.size()) ends.resize(layers[i] + 1);
    GraphPoint& end = ends[layers[i]];
    GraphBox& box = picture->boxes[i];
    box.center.x = end.x + box.width / 2;
    end.x += box.width + kGapAcross;
    end.y = std::max(end.y, box.height);
  }
  std::vector<double> middles;
  double bottom = 0;
  for (const GraphPoint& end : ends) {
    middles.push_back(bottom + end.y / 2);
    bottom += end.y + kGapDown;
    picture->width = std::max(picture->width, end.x - kGapAcross);
  }
  picture->height = bottom;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    picture->boxes[i].center.x += (picture->width - ends[layers[i]].x + kGapAcross) / 2;
    picture->boxes[i].center.y = middles[layers[i]];
  }
  for (GraphLine& line : picture->lines) line.points.clear();
}

}  // namespace

void PlaceGraph(GraphPicture* picture, std::chrono::milliseconds patience) {
  const std::optional<std::string> plain = RunDot(DotProgram(*picture), patience, &picture->note);
  if (plain && ReadPlain(*plain, picture)) return;
  if (plain) picture->note = "the answer of `dot` of Graphviz is not understood";
  picture->width = 0;
  PlaceInLayers(picture);
}

}  // namespace rewire::tools
