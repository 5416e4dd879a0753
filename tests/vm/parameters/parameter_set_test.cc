// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/parameter_set.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

Named TwoVectors() { return {{"w", Floats({1, 2, 3})}, {"b", Floats(std::vector<float>(4096, 7))}}; }

std::vector<std::string> NamesOf(const ParameterSet& set) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < set.size(); ++i) names.emplace_back(set.name(i));
  return names;
}

std::string OpenError(const std::string& path) { return MessageOf(ParameterSet::Open(path)); }

TEST_CASE("every kind of parameter file gives the same set") {
  const Folder folder;
  for (const std::string& path :
       {WriteSafetensorsFile(folder / "a", TwoVectors()), WriteRwxFile(folder / "b", TwoVectors()),
        WriteRwxFile(folder / "c", TwoVectors(), true), WriteTvmFile(folder / "d", TwoVectors())}) {
    CAPTURE(path);
    for (const bool copy : {false, true}) {
      OpenOptions options;
      options.copy = copy;
      const Result<ParameterSet> set = ParameterSet::Open(path, options);
      REQUIRE(MessageOf(set) == "");
      CHECK(NamesOf(*set) == std::vector<std::string>{"b", "w"});
      CHECK(FloatsOf(At(*set, "w")) == std::vector<float>{1, 2, 3});
      CHECK(FloatsOf(At(*set, "b")) == std::vector<float>(4096, 7));
      CHECK((set->dtype(0) == kFloat32));
      CHECK(set->shape(0)[0] == 4096);
      CHECK(set->Find("x") == set->size());
    }
  }
}

TEST_CASE("a file that is open already is not mapped, and not decompressed, again") {
  const Folder folder;
  for (const std::string& path :
       {WriteSafetensorsFile(folder / "a", TwoVectors()), WriteRwxFile(folder / "b", TwoVectors()),
        WriteRwxFile(folder / "c", TwoVectors(), true)}) {
    CAPTURE(path);
    const ParameterSet first = *ParameterSet::Open(path);
    const ParameterSet second = *ParameterSet::Open(path);
    const Tensor held = At(first, "b");
    CHECK(held.view().data() == At(second, "b").view().data());
    OpenOptions copy;
    copy.copy = true;
    const bool compressed = path.back() == 'c';
    // A host that asked for a copy is not given pages of a file.
    const ParameterSet copied = *ParameterSet::Open(path, copy);
    CHECK(held.view().data() != At(copied, "b").view().data());
    // A copy may well serve one that is mapped.
    if (compressed) CHECK(At(copied, "b").view().data() != nullptr);
  }
}

TEST_CASE("tensors outlive their set and their file's name") {
  const Folder folder;
  Tensor kept;
  {
    const std::string path = WriteSafetensorsFile(folder / "a", TwoVectors());
    const ParameterSet set = *ParameterSet::Open(path);
    std::filesystem::remove(path);
    kept = At(set, "w");
  }
  CHECK(FloatsOf(kept) == std::vector<float>{1, 2, 3});
}

TEST_CASE("setting a parameter changes one handle alone") {
  ParameterSet set = SetOf(TwoVectors());
  const ParameterSet other = set;
  set.Set("w", Floats({9}));
  set.Set("c", Floats({5}));
  CHECK(FloatsOf(At(set, "w")) == std::vector<float>{9});
  CHECK(NamesOf(set) == std::vector<std::string>{"b", "c", "w"});
  CHECK(FloatsOf(At(other, "w")) == std::vector<float>{1, 2, 3});
  CHECK(NamesOf(other) == std::vector<std::string>{"b", "w"});
  CHECK(ParameterSet().size() == 0);
  CHECK(ParameterSet().Find("w") == 0);
}

TEST_CASE("what is no parameter file") {
  const Folder folder;
  const auto write = [&](const std::string& text) {
    std::ofstream(folder / "f", std::ios::binary) << text;
    return OpenError(folder / "f");
  };
  CHECK(OpenError(folder / "none") == "cannot open '" + (folder / "none") + "': No such file or directory");
  CHECK(OpenError(folder / ".") == "cannot read '" + (folder / ".") + "': Is a directory");
  CHECK(
      write("") ==
      folder /
          "f: not a .safetensors file, or it ends inside its header; safetensors.numpy.save_file writes one");
  CHECK(write("0123456789") ==
        folder /
            "f: not a .safetensors file, or its header is damaged; safetensors.numpy.save_file writes one");
  CHECK(write("\x89RWX\n\n\x1a\n") ==
        folder / "f: the file was changed by a transfer as text: copy it again as binary");
  CHECK(write(std::string("\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7", 8)) ==
        folder / "f: the file ends inside the parameter names");
  WriteTvmFile(folder / "f", {{"w", Floats({1})}, {"w", Floats({2})}});
  CHECK(OpenError(folder / "f") == folder / "f: two parameters are called w");
}

TEST_CASE("a damaged file says so where its bytes are used") {
  const Folder folder;
  const std::string path = WriteRwxFile(folder / "a", TwoVectors(), true);
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).seekp(size - 2).put('x');
  const Result<ParameterSet> set = ParameterSet::Open(path);
  REQUIRE(MessageOf(set) == "");
  CHECK(MessageOf(set->TryGet(set->Find("w"))) == "");
  const std::string message = MessageOf(set->TryGet(set->Find("b")));
  CHECK(message.substr(0, 46) == "constant 'b' is damaged: its bytes have checks");
  OpenOptions verify;
  verify.verify_data = true;
  CHECK(MessageOf(ParameterSet::Open(path, verify)).find("constant 1 ('b') is damaged") != std::string::npos);
}

}  // namespace
}  // namespace rewire::test
