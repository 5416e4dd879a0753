// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/names/strip.h"
#include "rewire/executable_format/names/name_map.h"

#include <catch2/catch.hpp>

#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

using test::Sample;

TEST_CASE("a stripped sample verifies, and its map makes it what it was") {
  for (const test::SampleModule& sample : test::SampleModules()) {
    CAPTURE(sample.name);
    Result<StrippedModule> stripped = StripModule(sample.module);
    REQUIRE(stripped);
    Status verified = VerifyModule(stripped->module);
    if (!verified) FAIL(verified.error().message());
    Result<NameMap> map = NameMap::Parse(stripped->map);
    REQUIRE(map);
    Result<Module> restored = map->Restore(stripped->module);
    REQUIRE(restored);
    CHECK(*SerializeModule(*restored) == *SerializeModule(sample.module));
  }
}

TEST_CASE("what is taken and what stays") {
  const Module module = Sample("shapes");
  const Module stripped = StripModule(module)->module;
  CHECK(stripped.functions[0].name == "__init");
  CHECK(stripped.functions[1].name == "1");
  CHECK(stripped.functions[1].inputs[0].name == "0");
  CHECK(stripped.functions[1].output_names[0] == "0");
  CHECK(stripped.symbols[0] == "0");
  CHECK(stripped.constants[0].name == "weight");
  CHECK(stripped.constants[1].name.empty());
  CHECK(stripped.kernels[0].name == "test.pack");
  CHECK(stripped.devices[1].memory_scope == "scratch");
  CHECK(stripped.functions[1].code == module.functions[1].code);

  const Module add = StripModule(Sample("add_constant"))->module;
  CHECK(add.functions[0].notes.empty());
  CHECK(add.kernels[0].debug_name.empty());
  CHECK(add.kernels[0].attributes.size() == 5);
  CHECK(add.metadata.empty());
  Module named = Sample("add_constant");
  named.kernels[0].attributes.push_back({"debug.nodes", std::string("Add 'secret'")});
  CHECK(StripModule(named)->module.kernels[0].attributes == add.kernels[0].attributes);
  CHECK(StripModule(Sample("control"))->module.strings[0] == "0");
}

TEST_CASE("functions that are kept") {
  const Module stripped = StripModule(Sample("control"), {{"main", "head"}})->module;
  CHECK(stripped.functions[0].name == "0");
  CHECK(stripped.functions[2].name == "head");
  CHECK(stripped.functions[3].inputs[0].name == "x");

  CHECK(StripModule(Sample("identity"), {{"mein"}}).error().message() ==
        "the executable has no function named \"mein\"; did you mean 'main'?");
  Module numbered = Sample("identity");
  numbered.functions[0].name = "7";
  CHECK(StripModule(numbered, {{"7"}}).error().message() ==
        "the name '7' cannot be kept: numbers are what other functions get");
}

TEST_CASE("messages get their names back") {
  Module module = Sample("add_constant");
  const std::uint32_t call = module.functions[0].notes[0].pc;
  const NameMap map = *NameMap::Parse(StripModule(module)->map);
  const std::string pc = std::to_string(call);
  CHECK(map.Restore("0@" + pc + " (invoke_packed rewire.add(%0), outputs=1): shapes differ") ==
        "main@" + pc + " [Add_3] (invoke_packed rewire.add(%0), outputs=1): shapes differ");
  CHECK(map.Restore("main@" + pc + ": x") == "main@" + pc + " [Add_3]: x");
  CHECK(map.Restore("called from 0@0, 0@0") == "called from main@0, main@0");
  for (const char* same : {"", "nothing here", "1@0", "f32[4]@1", "0@", "@0", "0@x", "0@1x", " 0 @ 1 "}) {
    CHECK(map.Restore(same) == same);
  }
}

TEST_CASE("a map that is none, or another module's") {
  CHECK(NameMap::Parse("{").error().message() == "the map of names is not JSON");
  CHECK(NameMap::Parse("[]").error().message() == "the map of names is malformed: it has no 'rewire_names'");
  CHECK(NameMap::Parse(R"({"rewire_names": 2})").error().message() ==
        "the map of names has version 2, this library reads 1");
  CHECK(NameMap::Parse(R"({"rewire_names": 1})").error().message() ==
        "the map of names is malformed: it has no 'functions'");
  CHECK(
      NameMap::Parse(R"({"rewire_names": 1, "functions": [{}], "symbols": [], "strings": [], "constants": [],
                           "kernels": [], "metadata": []})")
          .error()
          .message() == "the map of names is malformed: function 0 is not complete");
  CHECK(NameMap::Parse(R"({"rewire_names": 1, "functions": [], "symbols": [1], "strings": [], "constants": [],
                           "kernels": [], "metadata": []})")
            .error()
            .message() == "the map of names is malformed: 'symbols' is not a list of strings");

  const NameMap map = *NameMap::Parse(StripModule(Sample("identity"))->map);
  CHECK(map.Restore(Sample("control")).error().message() ==
        "the map of names is not this module's: the module has 4 functions, the map 1");
  Module other = Sample("identity");
  other.functions[0].inputs.clear();
  CHECK(map.Restore(other).error().message() ==
        "the map of names is not this module's: the module has 0 inputs of function 0, the map 1");
}

TEST_CASE("lists of outputs' strings stay under the functions' new names") {
  Module module = Sample("shapes");
  module.metadata.clear();
  const std::string& name = module.functions[1].name;
  for (const std::string& key :
       {"strings " + name + ".0", "input strings " + name + ".0", "keys " + name + ".1",
        "strings " + name + ".x", std::string("strings nobody.0"), std::string("producer")})
    module.metadata.emplace_back(key, "[]");
  const Result<StrippedModule> stripped = StripModule(module);
  REQUIRE(stripped);
  const Array<std::pair<std::string, std::string>>& kept = stripped->module.metadata;
  REQUIRE(kept.size() == 3);
  CHECK(kept[0].first == "strings 1.0");
  CHECK(kept[1].first == "input strings 1.0");
  CHECK(kept[2].first == "keys 1.1");
}

}  // namespace
}  // namespace rewire
