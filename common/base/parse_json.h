// The one door for JSON text, whoever wrote it: jobs, plans, manifests, profiles, the store. Everything behind it may recurse.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace motley {

// Lists and objects within each other; what we read is at most 11 deep.
inline constexpr size_t kDeepestJson = 32;
inline constexpr size_t kAnyNumber = static_cast<size_t>(-1);

// INVALID_ARGUMENT, beginning with `source` and naming the byte: not JSON, deeper than kDeepestJson, or an object that has a key
// twice (readers differ in which of the two they take). Takes time and memory in proportion to the text: some 20 times as much
// where it is all brackets. With `most_values` no more than so many are ever held, lists and objects too.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, std::string_view source, size_t most_values = kAnyNumber);
// The same; objects keep the order of their keys.
absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(std::string_view text, std::string_view source);

// A text as JSON writes it, and TOML and YAML too: in quotes, what is no UTF-8 in it replaced.
std::string JsonText(const std::string& text);
// A value as a message may repeat it: its text, cut (clean_text.h).
std::string EchoJson(const nlohmann::json& value);

}  // namespace motley
