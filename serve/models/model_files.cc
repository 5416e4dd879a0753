// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/model_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace rewire::serve {
namespace {

namespace fs = std::filesystem;
using Models = std::map<std::string, std::vector<VersionFile>>;

bool IsModelFile(const fs::path& path) { return path.extension() == ".rwx" || path.extension() == ".onnx"; }

std::optional<std::int64_t> VersionOf(const fs::path& folder) {
  const std::string name = folder.filename().string();
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  if (error != std::errc() || end != name.data() + name.size() || version < 1) return std::nullopt;
  return version;
}

// Entries in the order of their names. Hidden ones are left out.
Result<std::vector<fs::path>> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    if (i->path().filename().string().front() != '.') entries.push_back(i->path());
  }
  if (error)
    return Fail(StatusCode::kIo, "cannot read the folder '{}': {}", folder.string(), error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// The model in the folder of a version: model.rwx, model.onnx, or the only file that is a model.
Result<std::string> FileOfVersion(const fs::path& folder) {
  for (const char* name : {"model.rwx", "model.onnx"}) {
    if (fs::exists(folder / name)) return (folder / name).string();
  }
  const Result<std::vector<fs::path>> entries = Entries(folder);
  if (!entries) return Forward(entries);
  std::vector<fs::path> files;
  std::copy_if(entries->begin(), entries->end(), std::back_inserter(files), IsModelFile);
  if (files.size() == 1) return files.front().string();
  return Fail(StatusCode::kInvalidArgument,
              "'{}' holds {} models: one file of .rwx or .onnx is expected, or model.rwx, or model.onnx",
              folder.string(), files.size());
}

Status ChooseVersions(const std::string& model, const ModelSettings& settings,
                      std::vector<VersionFile>* files) {
  std::sort(files->begin(), files->end(),
            [](const VersionFile& a, const VersionFile& b) { return a.version < b.version; });
  if (settings.versions.empty()) {
    const std::size_t keep = settings.newest == 0 ? files->size() : settings.newest;
    if (files->size() > keep) files->erase(files->begin(), files->end() - static_cast<std::ptrdiff_t>(keep));
    return {};
  }
  std::vector<VersionFile> chosen;
  for (const VersionFile& file : *files) {
    const auto& wanted = settings.versions;
    if (std::find(wanted.begin(), wanted.end(), file.version) != wanted.end()) chosen.push_back(file);
  }
  if (chosen.size() != settings.versions.size()) {
    return Fail(StatusCode::kInvalidArgument, "model '{}': {} of the {} versions of its settings are there",
                model, chosen.size(), settings.versions.size());
  }
  *files = std::move(chosen);
  return {};
}

// The versions in a folder of Triton's layout; empty if it is none.
Result<std::vector<VersionFile>> VersionsIn(const fs::path& folder) {
  const Result<std::vector<fs::path>> entries = Entries(folder);
  if (!entries) return Forward(entries);
  std::vector<VersionFile> files;
  for (const fs::path& entry : *entries) {
    const std::optional<std::int64_t> version = VersionOf(entry);
    if (!version || !fs::is_directory(entry)) continue;
    Result<std::string> file = FileOfVersion(entry);
    if (!file) return Forward(file);
    files.push_back({*version, *std::move(file)});
  }
  return files;
}

Status AddModel(const fs::path& path, std::string name, Models* models) {
  std::vector<VersionFile> files;
  if (fs::is_directory(path)) {
    Result<std::vector<VersionFile>> versions = VersionsIn(path);
    if (!versions) return Forward(versions);
    files = *std::move(versions);
    if (files.empty()) {
      return Fail(StatusCode::kInvalidArgument, "'{}' has no folder of a version, such as {}/1/model.onnx",
                  path.string(), path.string());
    }
  } else if (IsModelFile(path)) {
    files.push_back({1, path.string()});
  } else {
    return Fail(StatusCode::kInvalidArgument, "'{}' is no .rwx, .onnx or folder of models", path.string());
  }
  if (!models->emplace(name, std::move(files)).second) {
    return Fail(StatusCode::kInvalidArgument, "'{}' is the second model of the name '{}'", path.string(),
                name);
  }
  return {};
}

Status AddPath(const std::string& text, Models* models) {
  const fs::path path(text);
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Fail(StatusCode::kNotFound, "cannot open '{}': No such file or directory", text);
  }
  if (!fs::is_directory(path)) return AddModel(path, path.stem().string(), models);
  const Result<std::vector<VersionFile>> versions = VersionsIn(path);
  if (!versions) return Forward(versions);
  if (!versions->empty()) {
    const fs::path folder = fs::canonical(path, error);
    return AddModel(path, folder.filename().string(), models);
  }
  const Result<std::vector<fs::path>> entries = Entries(path);
  if (!entries) return Forward(entries);
  const std::size_t before = models->size();
  for (const fs::path& entry : *entries) {
    if (!fs::is_directory(entry) && !IsModelFile(entry)) continue;
    const std::string name = fs::is_directory(entry) ? entry.filename().string() : entry.stem().string();
    if (Status added = AddModel(entry, name, models); !added) return Forward(added);
  }
  if (models->size() == before) {
    return Fail(StatusCode::kInvalidArgument,
                "the folder '{}' holds no model: .rwx and .onnx files, or folders "
                "such as MODEL/1/model.onnx, are expected",
                text);
  }
  return {};
}

}  // namespace

Result<std::map<std::string, std::vector<VersionFile>>> FindModels(const ServeSettings& settings) {
  Models models;
  for (const std::string& path : settings.paths) {
    if (Status added = AddPath(path, &models); !added) return Forward(added);
  }
  for (const auto& [name, model] : settings.models) {
    if (!model.file.empty()) {
      if (!fs::exists(model.file)) {
        return Fail(StatusCode::kNotFound, "model '{}': cannot open '{}': No such file or directory", name,
                    model.file);
      }
      if (Status added = AddModel(model.file, name, &models); !added) return Forward(added);
    } else if (models.count(name) == 0) {
      return Fail(StatusCode::kInvalidArgument,
                  "the settings have a model '{}', and there is none: give it a `file`", name);
    }
  }
  if (models.empty()) return Fail(StatusCode::kInvalidArgument, "no model is given: name a file or a folder");
  for (auto& [name, files] : models) {
    if (Status chosen = ChooseVersions(name, settings.Of(name), &files); !chosen) return Forward(chosen);
  }
  return models;
}

}  // namespace rewire::serve
