// SPDX-License-Identifier: Apache-2.0
// Models and their weights as hubs lay them: as links to one folder that has the files. Links to anywhere
// else are refused, however they get there.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/tests/compiler/model_builder.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

namespace fs = std::filesystem;

std::string LinkedModel(const std::string& location) {
  onnx::ModelProto model = EmptyModel();
  onnx::TensorProto* weight = model.mutable_graph()->add_initializer();
  weight->set_name("w");
  weight->set_data_type(onnx::TensorProto::FLOAT);
  weight->add_dims(4);
  weight->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = weight->add_external_data();
  entry->set_key("location");
  entry->set_value(location);
  AddNode(model.mutable_graph(), "Relu", {"w"}, "y");
  SetValue(model.mutable_graph()->add_output(), "y", {});
  return model.SerializeAsString();
}

std::string MessageOf(const Result<Compilation>& result) { return result ? "" : result.error().message(); }

void WriteLinked(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// How the links of one cache are made.
struct Layout {
  bool is_absolute = false;
  std::string within;             // folder of the model in its snapshot
  bool by_snapshot_link = false;  // the snapshot is reached by way of a link
  bool is_linked = true;          // the model is a link to its blob, else a file
};

// A cache with a model that reads "data", of which nothing exists yet.
class Cache {
 public:
  explicit Cache(const Layout& layout) : layout_(layout), root_(fs::canonical(folder_.path())) {
    snapshot_ = root_ / "snapshots" / "r1" / layout.within;
    fs::create_directories(snapshot_);
    for (const char* name : {"blobs/d1", "blobs/deep/d2", "other/d3"})
      WriteLinked(root_ / name, std::string(16, 'w'));
    const fs::path model = layout.is_linked ? root_ / "blobs" / "m1" : snapshot_ / "model.onnx";
    WriteLinked(model, LinkedModel("data"));
    if (layout.is_linked) Link(model, snapshot_ / "model.onnx");
    if (layout.by_snapshot_link) fs::create_directory_symlink("snapshots/r1", root_ / "latest");
  }

  fs::path root() const { return root_; }
  fs::path data() const { return snapshot_ / "data"; }
  void Link(const fs::path& target, const fs::path& link) const {
    fs::create_symlink(layout_.is_absolute ? target : target.lexically_relative(link.parent_path()), link);
  }
  Result<Compilation> Compile() const {
    const fs::path named = layout_.by_snapshot_link ? root_ / "latest" / layout_.within : snapshot_;
    return rewire::Compile((named / "model.onnx").string());
  }

 private:
  TempFolder folder_;
  Layout layout_;
  fs::path root_, snapshot_;
};

std::vector<Layout> Layouts() {
  std::vector<Layout> layouts;
  for (const bool is_absolute : {false, true}) {
    for (const char* within : {"", "onnx", "onnx/fp16"}) {
      for (const bool by_snapshot_link : {false, true}) {
        for (const bool is_linked : {false, true})
          layouts.push_back({is_absolute, within, by_snapshot_link, is_linked});
      }
    }
  }
  return layouts;
}

struct DataCase {
  const char* what;
  std::function<void(const Cache&)> make;
  bool is_beside_model;  // in the folder that the linked model lies in
  const char* message;   // if it is not
};

const std::vector<DataCase>& DataCases() {
  static const char* const kLeadsOut = "by a link that leads out of the model's folder";
  static const std::vector<DataCase> kCases = {
      {"a blob beside the model's", [](const Cache& c) { c.Link(c.root() / "blobs/d1", c.data()); }, true,
       kLeadsOut},
      {"a blob in a folder there", [](const Cache& c) { c.Link(c.root() / "blobs/deep/d2", c.data()); }, true,
       kLeadsOut},
      {"by way of another link",
       [](const Cache& c) {
         c.Link(c.root() / "blobs/d1", c.root() / "other/link");
         c.Link(c.root() / "other/link", c.data());
       },
       true, kLeadsOut},
      {"another folder", [](const Cache& c) { c.Link(c.root() / "other/d3", c.data()); }, false, kLeadsOut},
      {"out by ..", [](const Cache& c) { fs::create_symlink(c.root() / "blobs/../other/d3", c.data()); },
       false, kLeadsOut},
      {"out by .. of a folder there",
       [](const Cache& c) { fs::create_symlink(c.root() / "blobs/deep/../../other/d3", c.data()); }, false,
       kLeadsOut},
      {"out by a link to a folder there",
       [](const Cache& c) {
         c.Link(c.root() / "other", c.root() / "blobs/out");
         c.Link(c.root() / "blobs/out/d3", c.data());
       },
       false, kLeadsOut},
      {"a folder of nearly the same name",
       [](const Cache& c) {
         WriteLinked(c.root() / "blobs2/d1", std::string(16, 'w'));
         c.Link(c.root() / "blobs2/d1", c.data());
       },
       false, kLeadsOut},
      {"the folder itself",
       [](const Cache& c) { fs::create_directory_symlink(c.root() / "other", c.data()); }, false, kLeadsOut},
      {"a loop",
       [](const Cache& c) {
         c.Link(c.data(), c.root() / "blobs/loop");
         c.Link(c.root() / "blobs/loop", c.data());
       },
       false, "is not inside the model's folder"},
  };
  return kCases;
}

TEST_CASE("links of a hub's cache lead to the folder that the model itself lies in, and nowhere else") {
  for (const Layout& layout : Layouts()) {
    for (const DataCase& data : DataCases()) {
      CAPTURE(layout.is_absolute, layout.within, layout.by_snapshot_link, layout.is_linked, data.what);
      const Cache cache(layout);
      data.make(cache);
      const Result<Compilation> compiled = cache.Compile();
      if (data.is_beside_model && layout.is_linked) {
        INFO(MessageOf(compiled));
        CHECK(compiled);
      } else {
        CHECK_THAT(MessageOf(compiled), Catch::Contains(data.message));
      }
    }
  }
}

TEST_CASE("data of a linked model is named from the folder where the link is") {
  const Layout layout;
  {
    // As a file beside the link.
    const Cache cache(layout);
    WriteLinked(cache.data(), std::string(16, 'w'));
    CHECK(cache.Compile());
  }
  {
    // No file, a link that leads nowhere, and one to a folder among the blobs.
    const Cache cache(layout);
    CHECK(cache.Compile().error().code() == StatusCode::kNotFound);
    CHECK_THAT(MessageOf(cache.Compile()), Catch::Contains("cannot open"));
    cache.Link(cache.root() / "blobs/gone", cache.data());
    CHECK(cache.Compile().error().code() == StatusCode::kNotFound);
    CHECK_THAT(MessageOf(cache.Compile()),
               Catch::Contains("external data 'data' is a link that leads nowhere"));
    fs::remove(cache.data());
    cache.Link(cache.root() / "blobs/deep", cache.data());
    CHECK_THAT(MessageOf(cache.Compile()), Catch::Contains("Is a directory"));
  }
  {
    // The name itself leads there.
    const Cache cache(layout);
    WriteLinked(cache.root() / "blobs/m1", LinkedModel("../../blobs/d1"));
    CHECK_THAT(MessageOf(cache.Compile()), Catch::Contains("is not inside the model's folder"));
    WriteLinked(cache.root() / "blobs/m1", LinkedModel((cache.root() / "blobs/d1").string()));
    CHECK_THAT(MessageOf(cache.Compile()), Catch::Contains("is not inside the model's folder"));
  }
}

}  // namespace
}  // namespace rewire::test
