// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/answer_check.h"

#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rewire::fuzz {
namespace {

constexpr std::string_view kLine = "\r\n";

// Takes the text up to `end`, and `end` itself, off the front. Nothing if `end` does not come.
std::optional<std::string_view> TakeUpTo(std::string_view end, std::string_view* text) {
  const std::size_t at = text->find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text->substr(0, at);
  text->remove_prefix(at + end.size());
  return taken;
}

std::optional<std::size_t> NumberOf(std::string_view text, int base) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The content of a body in chunks. Nothing if it is not whole, or if more follows.
std::optional<std::string> Joined(std::string_view chunks) {
  std::string content;
  while (true) {
    const std::optional<std::string_view> line = TakeUpTo(kLine, &chunks);
    const std::optional<std::size_t> size = line ? NumberOf(*line, 16) : std::nullopt;
    if (!size || chunks.size() < *size + kLine.size() || chunks.substr(*size, kLine.size()) != kLine)
      return std::nullopt;
    content += chunks.substr(0, *size);
    chunks.remove_prefix(*size + kLine.size());
    if (*size == 0) return chunks.empty() ? std::optional(content) : std::nullopt;
  }
}

bool AreEventsOfJson(std::string_view events) {
  while (!events.empty()) {
    const std::optional<std::string_view> event = TakeUpTo("\n\n", &events);
    constexpr std::string_view kData = "data: ";
    if (!event || event->substr(0, kData.size()) != kData) return false;
    const std::string_view data = event->substr(kData.size());
    if (data != "[DONE]" && !nlohmann::json::accept(data)) return false;
  }
  return true;
}

}  // namespace

std::string_view WhatIsWrong(std::string_view answer) {
  const std::optional<std::string_view> status = TakeUpTo(kLine, &answer);
  if (!status || status->substr(0, 9) != "HTTP/1.1 ") return "the answer is no response of HTTP/1.1";
  std::optional<std::size_t> size;
  std::string_view type;
  bool is_chunked = false;
  while (true) {
    const std::optional<std::string_view> line = TakeUpTo(kLine, &answer);
    if (!line) return "the head of the answer does not end";
    if (line->empty()) break;
    std::string_view value = *line;
    const std::optional<std::string_view> name = TakeUpTo(": ", &value);
    if (!name) return "a line of the head is no field";
    if (*name == "Content-Length") size = NumberOf(value, 10);
    if (*name == "Content-Type") type = value;
    if (*name == "Transfer-Encoding") is_chunked = value == "chunked";
  }
  std::string content(answer);
  if (is_chunked) {
    std::optional<std::string> joined = Joined(answer);
    if (!joined) return "the chunks of the answer are not whole";
    content = *std::move(joined);
  } else if (!size || *size != answer.size()) {
    return "the answer has another size than its head says";
  }
  constexpr std::string_view kEvents = "text/event-stream";
  const bool is_json =
      type.substr(0, kEvents.size()) == kEvents ? AreEventsOfJson(content) : nlohmann::json::accept(content);
  return is_json ? "" : "the answer is no JSON";
}

}  // namespace rewire::fuzz
