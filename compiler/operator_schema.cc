// SPDX-License-Identifier: Apache-2.0
//
// Schemas of operators from JSON.
#include "rewire/compiler/operator_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "rewire/base/mapped_file.h"
#include "rewire/base/near_names.h"
#include "rewire/base/utf8.h"

namespace rewire {
namespace {

using Json = nlohmann::json;
using Schema = OperatorSchema;

constexpr std::size_t kMostGivenBytes = 64;

// A part of the text, with its place: "ops.json: operators[0].inputs[1]".
class Part {
 public:
  Part(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const Json& json() const { return json_; }
  bool Has(const char* key) const { return json_.contains(key); }
  Part At(const char* key) const { return {json_.at(key), where_ + "." + key}; }
  std::vector<Part> Elements() const {
    std::vector<Part> parts;
    for (const Json& each : json_) parts.emplace_back(each, fmt::format("{}[{}]", where_, parts.size()));
    return parts;
  }

  Status Expected(const std::string& what) const {
    return Fail(StatusCode::kInvalidArgument, fmt::format("{}: expected {}, given {}", where_, what,
                                                          Printable(json_.dump(), kMostGivenBytes)));
  }
  // Errors unless it is an object with these keys, of which the first `needed` must be there.
  Status CheckKeys(const std::vector<std::string>& keys, std::size_t needed) const {
    if (!json_.is_object()) return Expected("an object with " + keys[0]);
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("{}: there is no key '{}'{}", where_, key,
                              KnownNames("keys", key, {keys.data(), keys.size()})));
    }
    for (std::size_t i = 0; i < needed; ++i) {
      if (!Has(keys[i].c_str()))
        return Fail(StatusCode::kInvalidArgument,
                    fmt::format("{}: the key '{}' is missing", where_, keys[i]));
    }
    return {};
  }

  // The value under a key that may be missing.
  Status Read(const char* key, std::string* text) const {
    if (!Has(key)) return {};
    if (!json_.at(key).is_string()) return At(key).Expected("a text");
    *text = json_.at(key).get<std::string>();
    return {};
  }
  Status Read(const char* key, bool* flag) const {
    if (!Has(key)) return {};
    if (!json_.at(key).is_boolean()) return At(key).Expected("true or false");
    *flag = json_.at(key).get<bool>();
    return {};
  }
  // Reads each element of a list by `read`.
  template <typename T>
  Status Read(const char* key, std::vector<T>* list, Status (*read)(const Part& part, T* element)) const {
    if (!Has(key)) return {};
    const Part part = At(key);
    if (!part.json_.is_array()) return part.Expected("a list");
    for (const Part& each : part.Elements()) {
      if (Status done = read(each, &list->emplace_back()); !done) return done;
    }
    return {};
  }

 private:
  const Json& json_;
  std::string where_;
};

Status ReadText(const Part& part, std::string* text) {
  if (!part.json().is_string()) return part.Expected("a text");
  *text = part.json().get<std::string>();
  return {};
}

Status ReadDim(const Part& part, std::string* dim) {
  if (!part.json().is_number_integer() && !part.json().is_string())
    return part.Expected("a number or an expression");
  *dim = part.json().is_string() ? part.json().get<std::string>() : part.json().dump();
  return {};
}

Status ReadShape(const Part& part, std::optional<Schema::Shape>* shape) {
  return part.Has("shape") ? part.Read("shape", &shape->emplace(), &ReadDim) : Status();
}

Status ReadInput(const Part& part, Schema::Input* input) {
  if (Status keys = part.CheckKeys({"name", "dtype", "shape", "optional", "variadic"}, 1); !keys) return keys;
  if (Status read = part.Read("name", &input->name); !read) return read;
  if (Status read = part.Read("optional", &input->optional); !read) return read;
  if (Status read = part.Read("variadic", &input->variadic); !read) return read;
  if (part.Has("dtype") && part.json().at("dtype").is_string()) {
    input->dtypes.push_back(part.json().at("dtype").get<std::string>());
  } else if (Status read = part.Read("dtype", &input->dtypes, &ReadText); !read) {
    return read;
  }
  return ReadShape(part, &input->shape);
}

Status ReadOutput(const Part& part, Schema::Output* output) {
  if (Status keys = part.CheckKeys({"name", "dtype", "shape", "shape_function", "variadic"}, 1); !keys)
    return keys;
  if (Status read = part.Read("name", &output->name); !read) return read;
  if (Status read = part.Read("dtype", &output->dtype); !read) return read;
  if (Status read = part.Read("shape_function", &output->shape_function); !read) return read;
  if (Status read = part.Read("variadic", &output->variadic); !read) return read;
  return ReadShape(part, &output->shape);
}

// The default is of the attribute's type. An integer will do for a float.
template <typename T, typename Is>
Status ReadValue(const Part& part, Schema::Attribute::Value* value, const char* expected, Is is) {
  T read{};
  if (!part.Has("default")) {
    *value = read;
    return {};
  }
  const Part given = part.At("default");
  if (!is(given.json())) return given.Expected(expected);
  *value = given.json().get<T>();
  return {};
}

bool IsList(const Json& json, bool (*is)(const Json& element)) {
  return json.is_array() && std::all_of(json.begin(), json.end(), is);
}
bool IsInt(const Json& json) { return json.is_number_integer(); }
bool IsNumber(const Json& json) { return json.is_number(); }

Status ReadAttribute(const Part& part, Schema::Attribute* attribute) {
  if (Status keys = part.CheckKeys({"name", "type", "default"}, 2); !keys) return keys;
  if (Status read = part.Read("name", &attribute->name); !read) return read;
  attribute->required = !part.Has("default");
  std::string type;
  if (Status read = part.Read("type", &type); !read) return read;
  Schema::Attribute::Value* value = &attribute->value;
  if (type == "int") return ReadValue<std::int64_t>(part, value, "an integer", IsInt);
  if (type == "float") return ReadValue<double>(part, value, "a number", IsNumber);
  if (type == "string") {
    return ReadValue<std::string>(part, value, "a text", [](const Json& json) { return json.is_string(); });
  }
  if (type == "ints") {
    return ReadValue<std::vector<std::int64_t>>(part, value, "a list of integers",
                                                [](const Json& json) { return IsList(json, IsInt); });
  }
  if (type == "floats") {
    return ReadValue<std::vector<double>>(part, value, "a list of numbers",
                                          [](const Json& json) { return IsList(json, IsNumber); });
  }
  return part.At("type").Expected("int, float, string, ints or floats");
}

Status ReadOperator(const Part& part, Schema* schema) {
  if (Status keys = part.CheckKeys(
          {"domain", "name", "inputs", "outputs", "attributes", "attributes_as", "kernel", "returns"}, 4);
      !keys) {
    return keys;
  }
  for (const auto& [key, text] : {std::pair("domain", &schema->domain), std::pair("name", &schema->name),
                                  std::pair("kernel", &schema->kernel)}) {
    if (Status read = part.Read(key, text); !read) return read;
  }
  if (Status read = part.Read("inputs", &schema->inputs, &ReadInput); !read) return read;
  if (Status read = part.Read("outputs", &schema->outputs, &ReadOutput); !read) return read;
  if (Status read = part.Read("attributes", &schema->attributes, &ReadAttribute); !read) return read;
  if (Status read = part.Read("returns", &schema->returns); !read) return read;
  std::string as = "arguments";
  if (Status read = part.Read("attributes_as", &as); !read) return read;
  if (as != "arguments" && as != "factory" && as != "node")
    return part.At("attributes_as").Expected("arguments, factory or node");
  if (as == "factory") schema->attributes_as = Schema::AttributesAs::kFactory;
  if (as == "node") schema->attributes_as = Schema::AttributesAs::kNode;
  return {};
}

}  // namespace

Result<std::vector<OperatorSchema>> ParseOperatorSchemas(const std::string& json, const std::string& what) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded())
    return Fail(StatusCode::kInvalidArgument, fmt::format("{}: it is no JSON", what));
  const Part whole(parsed, what);
  if (Status keys = whole.CheckKeys({"operators"}, 1); !keys) return Forward(keys);
  std::vector<OperatorSchema> schemas;
  if (Status read = whole.Read("operators", &schemas, &ReadOperator); !read) return Forward(read);
  return schemas;
}

Result<std::vector<OperatorSchema>> ReadOperatorSchemas(const std::string& path) {
  const Result<SharedBytes> bytes = ReadFile(path);
  if (!bytes) return Forward(bytes);
  return ParseOperatorSchemas(
      std::string(reinterpret_cast<const char*>(bytes->view.data()), bytes->view.size()), path);
}

}  // namespace rewire
