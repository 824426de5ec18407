#include "common/base/parse_json.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"

namespace motley {
namespace {

using Json = nlohmann::json;

// Where an editor finds the byte, counted from 1, and what of other formats begins there.
std::string PlaceOf(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const size_t line_end = before.rfind('\n');
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t column = before.size() - (line_end == std::string_view::npos ? 0 : line_end + 1) + 1;
  return absl::StrCat("byte ", byte, " (line ", line, ", column ", column, ")");
}

std::string HintAt(std::string_view text, size_t byte) {
  if (byte == 0 || byte > text.size()) return "";
  const std::string_view rest = text.substr(byte - 1), wrong = byte >= 2 ? text.substr(byte - 2) : rest;
  for (const std::string_view at : {rest, wrong}) {
    if (at.starts_with("//") || at.starts_with("/*") || at.starts_with("#")) return "; JSON has no comments";
    for (const std::string_view number : {"NaN", "Infinity", "-Infinity", "-NaN", "nan", "inf"}) {
      if (at.starts_with(number)) return "; JSON has neither NaN nor Infinity";
    }
  }
  return "";
}

// Walks the text without building anything; each event returns whether to go on. The parser itself does not recurse.
class Checker : public nlohmann::json_sax<Json> {
 public:
  Checker(std::string_view text, size_t most_values) : text_(text), most_values_(most_values) {}
  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(size_t) override { return Enter(); }
  bool start_array(size_t) override { return Enter(); }
  bool key(string_t& key) override {
    keys_.back().push_back(key);
    return true;
  }
  bool end_object() override {
    std::vector<std::string>& keys = keys_.back();
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) problem_ = absl::StrCat("the key ", Quoted(*twice), " stands twice in one object");
    keys_.pop_back();
    return problem_.empty();
  }
  bool end_array() override {
    keys_.pop_back();
    return true;
  }
  // What the library says may repeat the whole text.
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    if (problem_.empty()) problem_ = absl::StrCat("is not JSON: ", PlaceOf(text_, position), HintAt(text_, position));
    return false;
  }

  const std::string& problem() const { return problem_; }

 private:
  bool Count() {
    if (++values_ > most_values_) problem_ = absl::StrCat("holds more than ", most_values_, " values");
    return problem_.empty();
  }
  bool Enter() {
    if (!Count()) return false;
    keys_.emplace_back();
    if (keys_.size() > kDeepestJson) problem_ = absl::StrCat("is nested deeper than ", kDeepestJson, " levels");
    return problem_.empty();
  }

  const std::string_view text_;
  const size_t most_values_;
  size_t values_ = 0;
  std::vector<std::vector<std::string>> keys_;  // of every object that is open, and an empty list for every open list
  std::string problem_;
};

template <typename Value>
absl::StatusOr<Value> Parse(std::string_view text, std::string_view source, size_t most_values) {
  const auto fail = [source](std::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(Echo(source), ": ", std::string(problem)));
  };
  Checker checker(text, most_values);
  if (!Json::sax_parse(text, &checker)) return fail(checker.problem());
  Value value = Value::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return fail("is not JSON");
  return value;
}

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, std::string_view source, size_t most_values) {
  return Parse<Json>(text, source, most_values);
}

absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(std::string_view text, std::string_view source) {
  return Parse<nlohmann::ordered_json>(text, source, kAnyNumber);
}

std::string JsonText(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string EchoJson(const Json& value) { return Echo(value.dump(-1, ' ', false, Json::error_handler_t::replace)); }

}  // namespace motley
