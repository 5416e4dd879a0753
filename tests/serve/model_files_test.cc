// SPDX-License-Identifier: Apache-2.0
// Finding models, and their settings.
#include "rewire/serve/models/model_files.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

namespace fs = std::filesystem;

// A folder with empty files.
class Files {
 public:
  explicit Files(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      fs::create_directories((folder.path() / name).parent_path());
      folder.Write(name, "");
    }
  }
  std::string Error(const ServeSettings& settings) const {
    const auto models = FindModels(settings);
    return models ? std::string() : models.error().message();
  }
  ServeSettings Settings() const { return SettingsOf(folder.path().string()); }

  rewire::test::TempFolder folder;
};

TEST_CASE("models are files, and folders of versions as in Triton's layout") {
  const Files files({"a.onnx", "b.rwx", "c/1/model.onnx", "c/3/model.rwx", "c/3/model.onnx", "c/10/any.rwx",
                     "c/labels.txt", "c/config.pbtxt", "readme.txt", ".hidden/1/model.onnx"});
  ServeSettings settings = files.Settings();
  settings.defaults.newest = 0;
  const auto all = FindModels(settings);
  REQUIRE(all);
  CHECK(all->size() == 3);
  CHECK(all->at("a")[0].version == 1);
  REQUIRE(all->at("c").size() == 3);
  CHECK_THAT(all->at("c")[1].path, Catch::EndsWith("c/3/model.rwx"));
  CHECK(all->at("c")[2].version == 10);
  settings.defaults.newest = 1;
  CHECK(FindModels(settings)->at("c")[0].version == 10);
  settings.defaults.versions = {3};
  settings.models["c"] = settings.defaults;
  settings.defaults.versions = {};
  CHECK(FindModels(settings)->at("c")[0].version == 3);
  // One model's folder can be named itself.
  CHECK(FindModels(SettingsOf((files.folder.path() / "c").string()))->count("c") == 1);
}

TEST_CASE("folders and files without a model are refused") {
  const Files files({"a/1/x.onnx", "a/1/y.onnx", "empty/readme.txt", "b.onnx", "b/1/m.rwx", "c.txt"});
  const auto error = [&](const std::string& path) {
    return files.Error(SettingsOf((files.folder.path() / path).string()));
  };
  CHECK_THAT(error("a"), Catch::Contains("holds 2 models"));
  CHECK_THAT(error("empty"), Catch::Contains("holds no model"));
  CHECK_THAT(error("nothing"), Catch::Contains("nothing': No such file or directory"));
  CHECK_THAT(error("c.txt"), Catch::Contains("is no .rwx, .onnx or folder of models"));
  ServeSettings settings = SettingsOf((files.folder.path() / "b.onnx").string());
  settings.paths.push_back((files.folder.path() / "b").string());
  CHECK_THAT(files.Error(settings), Catch::Contains("is the second model of the name 'b'"));
  settings.paths.pop_back();
  settings.models["z"] = {};
  CHECK_THAT(files.Error(settings), Catch::Contains("the settings have a model 'z', and there is none"));
  settings.models["z"].file = "/nothing.rwx";
  CHECK_THAT(files.Error(settings),
             Catch::Contains("model 'z': cannot open '/nothing.rwx': No such file or directory"));
  settings.models = {};
  settings.models["b"].versions = {1, 2};
  CHECK_THAT(files.Error(settings), Catch::Contains("1 of the 2 versions of its settings are there"));
  CHECK_THAT(files.Error(ServeSettings()), Catch::Contains("no model is given"));
}

TEST_CASE("settings are read from TOML, and the defaults hold for each model") {
  const rewire::test::TempFolder folder;
  const std::string path = folder.Write("serve.toml", R"(
models_in = ["models"]
[server]
http = "0.0.0.0:9000"
loops = 3
busy_poll_us = 50
let_clients_load = true
tls_cert = "certificates/server.pem"
tls_key = "/etc/server.key"
trace_file = "traces.json"
cache = "compiled"
tls_client_ca = "../root.pem"
[defaults]
instances = 4
max_queue_size = 100
[models.a]
file = "elsewhere/a.rwx"
threads = 2
parameters = ["w.safetensors"]
versions = [1, 2]
[models.a.batching]
max_batch_size = 8
max_queue_delay_us = 200
preferred_sizes = [4]
allowed_sizes = [2, 8]
policy = "always"
[models.a.sandbox]
enabled = true
memory_bytes = 100000000
cpu_seconds = 5
[models.b.sequence]
state = {present = "past", "k.1" = "k.0"}
sizes = {C = 256}
max_sequences = 10
max_bytes = 1000000
idle_us = 5000
)");
  ServeSettings settings;
  const Status read = ReadSettings(path, &settings);
  REQUIRE(read);
  CHECK(settings.http == "0.0.0.0:9000");
  CHECK(settings.loops == 3);
  CHECK(settings.busy_poll_us == 50);
  CHECK(settings.let_clients_load);
  CHECK(settings.tls.certificate == (folder.path() / "certificates/server.pem").string());
  CHECK(settings.trace_file == (folder.path() / "traces.json").string());
  CHECK(settings.cache == (folder.path() / "compiled").string());
  CHECK(settings.tls.key == "/etc/server.key");
  CHECK(settings.tls.authorities == (folder.path().parent_path() / "root.pem").string());
  CHECK(settings.paths == std::vector<std::string>{(folder.path() / "models").string()});
  const ModelSettings& a = settings.Of("a");
  CHECK(a.instances == 4);
  CHECK(a.max_queue_size == 100);
  CHECK(a.threads == 2);
  CHECK(a.file == (folder.path() / "elsewhere/a.rwx").string());
  CHECK(a.parameters == std::vector<std::string>{(folder.path() / "w.safetensors").string()});
  CHECK(a.batching.allowed_sizes == std::vector<std::int64_t>{2, 8});
  CHECK(a.batching.always);
  CHECK_FALSE(settings.Of("b").batching.always);
  CHECK(a.sandbox.enabled);
  CHECK(a.sandbox.memory_bytes == 100000000);
  CHECK(a.sandbox.cpu_seconds == 5);
  CHECK_FALSE(settings.Of("b").sandbox.enabled);
  CHECK(settings.Of("b").batching.max_batch_size == 0);
  const SequenceSettings& sequence = settings.Of("b").sequence;
  CHECK(sequence.state == std::map<std::string, std::string>{{"present", "past"}, {"k.1", "k.0"}});
  CHECK(sequence.sizes == std::map<std::string, std::int64_t>{{"C", 256}});
  CHECK(sequence.max_sequences == 10);
  CHECK(sequence.max_bytes == 1000000);
  CHECK(sequence.idle_us == 5000);
}

TEST_CASE("wrong settings are refused with their line") {
  struct Row {
    const char* text;
    const char* words;
  };
  const std::vector<Row> rows = {
      {"a = ", "line 1, column"},
      {"\n[server]\nhtpp = 1", "line 3: there is no setting 'server.htpp'; did you mean 'http'?"},
      {"[server]\nhttp = 1", "line 2: 'server.http' must be a text"},
      {"[server]\ntls_cert = 1", "line 2: 'server.tls_cert' must be a text"},
      {"[server]\ntls_key = true", "line 2: 'server.tls_key' must be a text"},
      {"[server]\ntls_client_ca = []", "line 2: 'server.tls_client_ca' must be a text"},
      {"[server]\ntls_certificate = \"a\"", "there is no setting 'server.tls_certificate'"},
      {"[server]\nloops = -1", "'server.loops' must be a whole number from 0 to 1024"},
      {"[server]\nbusy_poll_us = 1000001", "'server.busy_poll_us' must be a whole number from 0 to 1000000"},
      {"[server]\nlet_clients_load = 1", "must be true or false"},
      {"[defaults]\nthreads = 1.5", "'defaults.threads' must be a whole number"},
      {"[defaults]\nversions = [0]", "must be a list of whole numbers above 0"},
      {"[defaults]\nparameters = \"a\"", "must be a list of texts"},
      {"[defaults]\nparameters = [1]", "must be a list of texts"},
      {"defaults = 1", "'defaults' must be a table"},
      {"[models]\na = 1", "line 2: 'models.a' must be a table"},
      {"[models.a.sequence]\nstate = \"a\"", "'models.a.sequence.state' must be a table of texts"},
      {"[models.a.sequence.state]\na = 1", "line 2: 'models.a.sequence.state' must be a table of texts"},
      {"[models.a.sequence]\nsizes = {a = -1}", "must be a table of whole numbers from 0"},
      {"[models.a.sequence]\nmax_sequences = 0", "must be a whole number from 1"},
      {"[models.a.generator]\ntokens = \"t\"\nlogits = \"l\"\nprefix_bytes = 5",
       "'models.a.generator.prefix_bytes' needs 'models.a.generator.cache_dimension'"},
      {"[models.a]\nsandbox = true", "'models.a.sandbox' must be a table"},
      {"[models.a.sandbox]\nmemory_bytes = 5",
       "'models.a.sandbox.memory_bytes' must be a whole number from 1048576"},
      {"[models.a.batching]\npolicy = \"never\"",
       "'models.a.batching.policy' must be \"auto\" or \"always\""},
      {"[models.a.batching]\nsize = 1", "there is no setting 'models.a.batching.size'"},
      {"[models.a.batching]\nmax_batch_size = 4\npreferred_sizes = [5]",
       "a size of batches is above max_batch_size, 4"},
      {"[models.a.batching]\nmax_batch_size = 4\nallowed_sizes = [2]",
       "max_batch_size, 4, must be one of allowed_sizes"},
  };
  const rewire::test::TempFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.text);
    ServeSettings settings;
    const Status read = ReadSettings(folder.Write("serve.toml", row.text), &settings);
    REQUIRE_FALSE(read);
    CHECK_THAT(read.error().message(), Catch::Contains(row.words) && Catch::Contains("serve.toml"));
  }
  ServeSettings settings;
  CHECK(ReadSettings((folder.path() / "none.toml").string(), &settings).code() == StatusCode::kNotFound);
}

TEST_CASE("models that cannot be served are all named at the start") {
  const rewire::test::TempFolder folder;
  WriteModel(folder, "good.rwx", DoubleProgram());
  WriteModel(folder, "fixed.rwx", ".func main(x: f32[4]) -> y: f32[4]\n  ret %x\n.end\n");
  WriteModel(folder, "open.rwx", ".func main(x: value) -> value\n  ret %x\n.end\n");
  WriteModel(folder, "complex.rwx", ".func main(x: c64[4]) -> y: c64[4]\n  ret %x\n.end\n");
  folder.Write("damaged.rwx", "nothing");
  ServeSettings settings = SettingsOf(folder.path().string());
  settings.models["fixed"].batching.max_batch_size = 4;
  const Result<std::unique_ptr<Service>> service = MakeService(settings);
  REQUIRE_FALSE(service);
  const std::string& message = service.error().message();
  CHECK_THAT(message, Catch::Contains("fixed.rwx: max_batch_size is 4, but requests cannot be put together"));
  CHECK_THAT(message, Catch::Contains("input 'x' is no tensor of known rank"));
  CHECK_THAT(message, Catch::Contains(
                          "input 'x' has elements of c64, which the Open Inference Protocol does not have"));
  CHECK_THAT(message, Catch::Contains("damaged.rwx"));
  CHECK_THAT(message, !Catch::Contains("good.rwx"));
}

}  // namespace
}  // namespace rewire::serve::test
