// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/settings.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "rewire/base/near_names.h"

namespace rewire::serve {
namespace {

// Reads one table: each key once, and complains about those that nobody has asked for.
class Table {
 public:
  Table(const toml::table& table, std::string where) : table_(table), where_(std::move(where)) {}

  void Number(std::string_view key, std::int64_t least, std::int64_t most,
              const std::function<void(std::int64_t)>& set) {
    const toml::node* const node = Take(key);
    if (node == nullptr) return;
    const std::optional<std::int64_t> value = node->is_integer() ? node->value<std::int64_t>() : std::nullopt;
    if (!value || *value < least || *value > most) {
      return Complain(*node, key,
                      "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    set(*value);
  }
  void Text(std::string_view key, std::string* text) {
    const toml::node* const node = Take(key);
    if (node == nullptr) return;
    if (!node->is_string()) return Complain(*node, key, "a text");
    *text = *node->value<std::string>();
  }
  void Flag(std::string_view key, bool* flag) {
    const toml::node* const node = Take(key);
    if (node == nullptr) return;
    if (!node->is_boolean()) return Complain(*node, key, "true or false");
    *flag = *node->value<bool>();
  }
  // One of two texts: `flag` is whether it is the second one.
  void Choice(std::string_view key, std::string_view no, std::string_view yes, bool* flag) {
    const toml::node* const node = Take(key);
    if (node == nullptr) return;
    const std::optional<std::string> text = node->is_string() ? node->value<std::string>() : std::nullopt;
    if (text != no && text != yes) {
      return Complain(*node, key, "\"" + std::string(no) + "\" or \"" + std::string(yes) + "\"");
    }
    *flag = text == yes;
  }
  // Whole numbers from `least`; `expected` says so.
  void Numbers(std::string_view key, std::int64_t least, const char* expected,
               std::vector<std::int64_t>* list) {
    const toml::array* const array = List(key, expected);
    if (array == nullptr) return;
    list->clear();
    for (const toml::node& node : *array) {
      if (!node.is_integer() || *node.value<std::int64_t>() < least) return Complain(node, key, expected);
      list->push_back(*node.value<std::int64_t>());
    }
  }
  void Sizes(std::string_view key, std::vector<std::int64_t>* list) {
    Numbers(key, 1, "a list of whole numbers above 0", list);
  }
  void Texts(std::string_view key, std::vector<std::string>* list) {
    const toml::array* const array = List(key, "a list of texts");
    if (array == nullptr) return;
    list->clear();
    for (const toml::node& node : *array) {
      if (!node.is_string()) return Complain(node, key, "a list of texts");
      list->push_back(*node.value<std::string>());
    }
  }
  // A table of any keys, each with a text.
  void TextOfEach(std::string_view key, std::map<std::string, std::string>* texts) {
    Each(key, "a table of texts", [&](const std::string& name, const toml::node& node) {
      if (!node.is_string()) return false;
      (*texts)[name] = *node.value<std::string>();
      return true;
    });
  }
  void SizeOfEach(std::string_view key, std::map<std::string, std::int64_t>* sizes) {
    Each(key, "a table of whole numbers from 0", [&](const std::string& name, const toml::node& node) {
      if (!node.is_integer() || *node.value<std::int64_t>() < 0) return false;
      (*sizes)[name] = *node.value<std::int64_t>();
      return true;
    });
  }
  void Inner(std::string_view key,
             const std::function<Status(const toml::table&, const std::string&)>& read) {
    const toml::node* const node = Take(key);
    if (node == nullptr) return;
    if (!node->is_table()) return Complain(*node, key, "a table");
    if (Status done = read(*node->as_table(), where_ + std::string(key) + "."); !done) Keep(done);
  }
  // The first complaint.
  Status Finish() {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        Keep(Fail(StatusCode::kInvalidArgument, "line {}: there is no setting '{}{}'{}",
                  node.source().begin.line, where_, name, KnownNames("settings", name, known_)));
      }
    }
    return status_;
  }

 private:
  const toml::node* Take(std::string_view key) {
    known_.emplace_back(key);
    return table_.get(key);
  }
  const toml::array* List(std::string_view key, const char* expected) {
    const toml::node* const node = Take(key);
    if (node != nullptr && !node->is_array()) Complain(*node, key, expected);
    return node == nullptr ? nullptr : node->as_array();
  }
  void Each(std::string_view key, const char* expected,
            const std::function<bool(const std::string&, const toml::node&)>& take) {
    const toml::node* const node = Take(key);
    if (node == nullptr) return;
    if (!node->is_table()) return Complain(*node, key, expected);
    for (const auto& [name, value] : *node->as_table()) {
      if (!take(std::string(name.str()), value)) return Complain(value, key, expected);
    }
  }
  void Complain(const toml::node& node, std::string_view key, const std::string& expected) {
    Keep(Fail(StatusCode::kInvalidArgument, "line {}: '{}{}' must be {}", node.source().begin.line, where_,
              key, expected));
  }
  void Keep(const Status& status) {
    if (status_) status_ = status;
  }

  const toml::table& table_;
  std::string where_;
  std::vector<std::string> known_;
  Status status_;
};

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Status ReadBatching(const toml::table& table, const std::string& where, BatchSettings* batching) {
  Table reader(table, where);
  reader.Number("max_batch_size", 0, 1 << 20, [&](std::int64_t n) { batching->max_batch_size = n; });
  reader.Number("max_queue_delay_us", 0, 60000000,
                [&](std::int64_t n) { batching->max_queue_delay_us = static_cast<std::uint64_t>(n); });
  reader.Sizes("preferred_sizes", &batching->preferred_sizes);
  reader.Sizes("allowed_sizes", &batching->allowed_sizes);
  reader.Choice("policy", "auto", "always", &batching->always);
  return reader.Finish();
}

Status ReadSequence(const toml::table& table, const std::string& where, SequenceSettings* sequence) {
  Table reader(table, where);
  reader.TextOfEach("state", &sequence->state);
  reader.SizeOfEach("sizes", &sequence->sizes);
  reader.Number("max_sequences", 1, 1 << 24,
                [&](std::int64_t n) { sequence->max_sequences = static_cast<std::uint32_t>(n); });
  reader.Number("max_bytes", 0, kMost,
                [&](std::int64_t n) { sequence->max_bytes = static_cast<std::uint64_t>(n); });
  reader.Number("idle_us", 0, std::int64_t{1} << 50,
                [&](std::int64_t n) { sequence->idle_us = static_cast<std::uint64_t>(n); });
  return reader.Finish();
}

Status ReadGenerator(const toml::table& table, const std::string& where, GeneratorSettings* generator) {
  Table reader(table, where);
  reader.Text("tokens", &generator->tokens);
  reader.Text("logits", &generator->logits);
  reader.Text("positions", &generator->positions);
  reader.Text("mask", &generator->mask);
  reader.Text("last", &generator->last);
  reader.Text("total", &generator->total);
  reader.Numbers("end", 0, "a list of tokens", &generator->end);
  reader.Text("tokenizer", &generator->tokenizer);
  reader.Numbers("begin", 0, "a list of tokens", &generator->begin);
  reader.TextOfEach("roles", &generator->roles);
  reader.Text("message_end", &generator->message_end);
  reader.Number("context", 1, kMost, [&](std::int64_t n) { generator->context = n; });
  reader.Text("cache_dimension", &generator->cache_dimension);
  reader.Number("prefix_bytes", 0, kMost,
                [&](std::int64_t n) { generator->prefix_bytes = static_cast<std::uint64_t>(n); });
  Status read = reader.Finish();
  if (read && (generator->tokens.empty() || generator->logits.empty())) {
    return Fail(StatusCode::kInvalidArgument,
                "line {}: '{}tokens' and '{}logits' must name an input and an output",
                table.source().begin.line, where, where);
  }
  if (read && generator->prefix_bytes != 0 && generator->cache_dimension.empty()) {
    return Fail(StatusCode::kInvalidArgument,
                "line {}: '{}prefix_bytes' needs '{}cache_dimension', along which prefixes are cut",
                table.source().begin.line, where, where);
  }
  if (read && !generator->roles.empty() &&
      (generator->roles.count("assistant") == 0 || generator->tokenizer.empty())) {
    return Fail(StatusCode::kInvalidArgument,
                "line {}: '{}roles' must have 'assistant', and needs '{}tokenizer'",
                table.source().begin.line, where, where);
  }
  return read;
}

Status ReadSandbox(const toml::table& table, const std::string& where, SandboxSettings* sandbox) {
  Table reader(table, where);
  reader.Flag("enabled", &sandbox->enabled);
  reader.Number("memory_bytes", 1 << 20, std::int64_t{1} << 46,
                [&](std::int64_t n) { sandbox->memory_bytes = static_cast<std::uint64_t>(n); });
  reader.Number("cpu_seconds", 1, 1 << 30,
                [&](std::int64_t n) { sandbox->cpu_seconds = static_cast<std::uint32_t>(n); });
  return reader.Finish();
}

Status ReadModel(const toml::table& table, const std::string& where, ModelSettings* model) {
  Table reader(table, where);
  const auto unsigned_number = [&](std::string_view key, std::uint64_t* value) {
    reader.Number(key, 0, kMost, [=](std::int64_t n) { *value = static_cast<std::uint64_t>(n); });
  };
  reader.Text("file", &model->file);
  reader.Number("instances", 0, 1024,
                [&](std::int64_t n) { model->instances = static_cast<std::uint32_t>(n); });
  reader.Number("threads", 1, 1024, [&](std::int64_t n) { model->threads = static_cast<std::int32_t>(n); });
  reader.Texts("parameters", &model->parameters);
  reader.Texts("kernels", &model->kernels);
  reader.Number("max_queue_size", 0, 1 << 24,
                [&](std::int64_t n) { model->max_queue_size = static_cast<std::uint32_t>(n); });
  unsigned_number("timeout_us", &model->timeout_us);
  unsigned_number("memory_bytes", &model->memory_bytes);
  unsigned_number("steps", &model->steps);
  reader.Number("depth", 0, 1 << 30, [&](std::int64_t n) { model->depth = static_cast<std::uint32_t>(n); });
  reader.Sizes("versions", &model->versions);
  reader.Number("newest", 0, 1000, [&](std::int64_t n) { model->newest = static_cast<std::uint32_t>(n); });
  reader.Inner("batching", [&](const toml::table& inner, const std::string& inside) {
    return ReadBatching(inner, inside, &model->batching);
  });
  reader.Inner("sequence", [&](const toml::table& inner, const std::string& inside) {
    return ReadSequence(inner, inside, &model->sequence);
  });
  reader.Inner("generator", [&](const toml::table& inner, const std::string& inside) {
    return ReadGenerator(inner, inside, &model->generator);
  });
  reader.Inner("sandbox", [&](const toml::table& inner, const std::string& inside) {
    return ReadSandbox(inner, inside, &model->sandbox);
  });
  return reader.Finish();
}

void FromFolder(const std::filesystem::path& folder, std::string* path) {
  if (!path->empty()) *path = (folder / *path).lexically_normal().string();
}

void ModelFromFolder(const std::filesystem::path& folder, ModelSettings* model) {
  FromFolder(folder, &model->file);
  FromFolder(folder, &model->generator.tokenizer);
  for (std::string& one : model->parameters) FromFolder(folder, &one);
  for (std::string& one : model->kernels) one = LibraryFile(folder.string(), one);
}

}  // namespace

Status ReadSettings(const std::string& path, ServeSettings* settings) {
  if (!std::filesystem::exists(path))
    return Fail(StatusCode::kNotFound, "cannot open '{}': No such file or directory", path);
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return Fail(StatusCode::kInvalidFile, "{}: line {}, column {}: {}", path, error.source().begin.line,
                error.source().begin.column, std::string(error.description()));
  }
  Table reader(file, "");
  std::vector<std::string> paths;
  reader.Texts("models_in", &paths);
  reader.Inner("server", [&](const toml::table& table, const std::string& where) {
    Table server(table, where);
    server.Text("http", &settings->http);
    server.Number("loops", 0, 1024, [&](std::int64_t n) { settings->loops = static_cast<std::uint32_t>(n); });
    server.Number("busy_poll_us", 0, 1000000,
                  [&](std::int64_t n) { settings->busy_poll_us = static_cast<std::uint32_t>(n); });
    server.Flag("let_clients_load", &settings->let_clients_load);
    server.Text("cache", &settings->cache);
    server.Text("trace_file", &settings->trace_file);
    server.Text("tls_cert", &settings->tls.certificate);
    server.Text("tls_key", &settings->tls.key);
    server.Text("tls_client_ca", &settings->tls.authorities);
    return server.Finish();
  });
  reader.Inner("defaults", [&](const toml::table& table, const std::string& where) {
    return ReadModel(table, where, &settings->defaults);
  });
  reader.Inner("models", [&](const toml::table& table, const std::string& where) -> Status {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (!node.is_table()) {
        return Fail(StatusCode::kInvalidArgument, "line {}: '{}{}' must be a table", node.source().begin.line,
                    where, name);
      }
      ModelSettings model = settings->defaults;
      if (Status done = ReadModel(*node.as_table(), where + name + ".", &model); !done) return Forward(done);
      settings->models[name] = std::move(model);
    }
    return {};
  });
  if (Status read = reader.Finish(); !read) return Forward(read, path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (std::string* one : {&settings->cache, &settings->trace_file, &settings->tls.certificate,
                           &settings->tls.key, &settings->tls.authorities})
    FromFolder(folder, one);
  for (std::string& one : paths) {
    FromFolder(folder, &one);
    settings->paths.push_back(one);
  }
  ModelFromFolder(folder, &settings->defaults);
  for (auto& [name, model] : settings->models) {
    ModelFromFolder(folder, &model);
    if (Status good = CheckSettings(name, model); !good) return Forward(good, path);
  }
  return {};
}

std::string LibraryFile(const std::string& folder, const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  const std::filesystem::path file = std::filesystem::path(folder.empty() ? "." : folder) / name;
  std::error_code failed;
  return is_path || std::filesystem::exists(file, failed) ? file.string() : name;
}

Status CheckSettings(const std::string& model, const ModelSettings& settings) {
  const BatchSettings& batching = settings.batching;
  const std::int64_t most = batching.max_batch_size;
  for (const std::vector<std::int64_t>* sizes : {&batching.preferred_sizes, &batching.allowed_sizes}) {
    if (std::any_of(sizes->begin(), sizes->end(), [&](std::int64_t size) { return size > most; })) {
      return Fail(StatusCode::kInvalidArgument, "model '{}': a size of batches is above max_batch_size, {}",
                  model, most);
    }
  }
  const auto& allowed = batching.allowed_sizes;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), most) == allowed.end()) {
    return Fail(StatusCode::kInvalidArgument, "model '{}': max_batch_size, {}, must be one of allowed_sizes",
                model, most);
  }
  return {};
}

}  // namespace rewire::serve
