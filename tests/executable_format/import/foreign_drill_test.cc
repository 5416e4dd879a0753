// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/import/foreign_drill.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/tests/vm/loader/elf_image.h"

namespace rewire::tvm {
namespace {

// A function with branches, a call, a closure and tensors; another that it calls.
std::string RelaySample() {
  RelaySpec spec;
  spec.functions.push_back({"main",
                            "16",
                            {"x", "y"},
                            {{11, 0, 0, 2},
                             {16, 5, 64, 2, 32, 1, 0, 2, 3, 4, 5},
                             {5, 3, 2, 2, 32, 1, 2, 4, 4, 5},
                             {4, 0, 3, 1, 0, 1, 4},
                             {13, 0, 5},
                             {14, 7, 6},
                             {10, 5, 6, 1, 3},
                             {2, 1, 2, 7, 4, 1},
                             {12, 2},
                             {0, 4, 7},
                             {8, 1, 1, 8, 7},
                             {3, 8, 1, 9, 0},
                             {17, 4, 10},
                             {18, 4, 10, 11},
                             {7, 0, 2, 12, 11, 9},
                             {20, 4},
                             {1, 12}},
                            ""});
  spec.functions.push_back({"other", "4", {"a", "b"}, {{7, 3, 2, 2, 0, 1}, {9, 2, 1, 3}, {1, 3}}, ""});
  spec.constants = {Scalar64(0), {"late", kInt64, {}, "", 0}};
  return WriteRelay(spec);
}

// Prints the counts, so that a run shows what was drilled.
ForeignDrillReport Drill(ForeignKind kind, const char* name, const std::string& file) {
  const ForeignDrillReport report = RunForeignDrill(kind, file, 10000);
  fmt::print("{}: {}\n", name, report.plain.Text());
  if (report.aware.mutants > 0) fmt::print("{}, the format in mind: {}\n", name, report.aware.Text());
  CHECK(report.plain.mutants + report.aware.mutants == 10000);
  CHECK(report.plain.memory_bounded());
  CHECK(report.aware.memory_bounded());
  CHECK(report.plain.past_reader > 0);
  return report;
}

TEST_CASE("damaged Relay files never get past an error") {
  const ForeignDrillReport report = Drill(ForeignKind::kRelay, "Relay VM executable", RelaySample());
  CHECK(report.aware.mutants == 5000);
  CHECK(5 * report.aware.past_reader >= report.aware.mutants);
  CHECK(report.aware.past_verifier < report.aware.past_reader);
  CHECK(report.aware.past_verifier > 0);
}

TEST_CASE("damaged graphs never get past an error") {
  const std::string graph =
      R"({"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "tvm_op", "name": "f", "attrs":
          {"func_name": "f", "flatten_data": "0"}, "inputs": [[0, 0, 0]]}], "heads": [[1, 0, 0]], "attrs":
          {"dltype": ["list_str", ["float32", "int8"]], "storage_id": ["list_int", [0, 1]],
           "shape": ["list_shape", [[2, 3], [6]]]}, "node_row_ptr": [0, 1, 2]})";
  const ForeignDrillReport report = Drill(ForeignKind::kGraph, "graph", graph);
  CHECK(report.aware.mutants == 5000);
  CHECK(10 * report.aware.past_reader >= report.aware.mutants);
  CHECK(report.aware.past_linker > 0);
}

TEST_CASE("damaged parameter files never get past an error") {
  StreamWriter parameters;
  parameters.Put(std::uint64_t{0xF7E58D4F05049CB7});
  parameters.Put(std::uint64_t{0});
  parameters.Strings({"a", "b"});
  parameters.Count(2);
  parameters.Tensor(kInt8, {2, 2}, "abcd");
  parameters.Tensor(kFloat32, {}, "abcd");
  Drill(ForeignKind::kParameters, "parameter file", parameters.bytes());
}

TEST_CASE("damaged library blobs never get past an error") {
  StreamWriter body;
  body.Count(2);
  body.String("VMExecutable");
  body.String(RelaySample());
  body.String("_lib");
  StreamWriter blob;
  blob.String(body.bytes());
  Drill(ForeignKind::kLibraryBlob, "library blob", blob.bytes());
}

TEST_CASE("damaged libraries are read or refused before their code runs") {
  for (const auto hash : {test::ElfImage::Hash::kSystemV, test::ElfImage::Hash::kGnu}) {
    const test::ElfImage image =
        test::ElfImage::Make({"__tvm_dev_mblob", "__tvm_ffi__library_bin", "__tvm_ffi_add"}, hash);
    const SharedBytes file = image.Write();
    const ForeignDrillReport report =
        Drill(ForeignKind::kLibrary, "library",
              {reinterpret_cast<const char*>(file.view.data()), file.view.size()});
    CHECK(5 * report.aware.past_reader >= report.aware.mutants);
  }
}

}  // namespace
}  // namespace rewire::tvm
