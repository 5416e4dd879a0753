// SPDX-License-Identifier: Apache-2.0
// Places the nodes of a graph in layers, by Graphviz where that is installed.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace rewire::tools {

// Lengths are pixels; x grows to the right, y downwards.
struct GraphPoint {
  double x = 0, y = 0;
};
struct GraphBox {
  double width = 0, height = 0;
  GraphPoint center;
};
// From box to box, by index. Its points are a start and then three for each piece of a cubic Bezier curve. It
// has none if it is to be drawn straight.
struct GraphLine {
  std::size_t from = 0, to = 0;
  std::vector<GraphPoint> points;
};

struct GraphPicture {
  std::vector<GraphBox> boxes;
  std::vector<GraphLine> lines;
  double width = 0, height = 0;
  std::string note;  // why the layout is a plain one; empty if Graphviz made it
};

// Sets the centers of boxes whose sizes are given, the points of lines, and the picture's size. Runs `dot` of
// Graphviz, and ends it if it takes longer than `patience`. Without it each box stands in the layer after the
// last of those that lead to it; boxes must then be in an order in which most lines lead forwards.
void PlaceGraph(GraphPicture* picture, std::chrono::milliseconds patience = std::chrono::seconds(30));

}  // namespace rewire::tools
