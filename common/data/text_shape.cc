#include "common/data/text_shape.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/ascii.h"
#include "common/base/parse_json.h"
#include "common/data/separated_fields.h"

namespace motley {
namespace {

// Two lines of objects are no chance; twenty are enough to read.
constexpr size_t kFewestJsonLines = 2, kMostJsonLines = 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsBlank(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); });
}

// Takes a line and its end; nothing where the head breaks off within it.
std::optional<std::string_view> TakeLine(std::string_view* rest, bool whole) {
  const size_t end = rest->find('\n');
  if (rest->empty() || (end == std::string_view::npos && !whole)) return std::nullopt;
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return line;
}

bool IsJsonLines(std::string_view text, bool whole) {
  size_t found = 0;
  while (found < kMostJsonLines) {
    const std::optional<std::string_view> line = TakeLine(&text, whole);
    if (!line) break;
    if (IsBlank(*line)) continue;
    if (line->front() != '{') return false;
    const auto value = ParseJson(*line, "");
    if (!value.ok() || !value->is_object() || value->empty()) return false;
    ++found;
  }
  return found >= kFewestJsonLines;
}

// Reads the beginning of a JSON text, token by token.
class JsonBeginning {
 public:
  explicit JsonBeginning(std::string_view text) : rest_(text) {}

  bool Takes(char c) {
    SkipBlanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::string_view> TakeText() {
    if (!Takes('"')) return std::nullopt;
    for (size_t at = 0; at < rest_.size() && rest_[at] != '\n'; ++at) {
      if (rest_[at] == '\\') {
        ++at;
      } else if (rest_[at] == '"') {
        const std::string_view text = rest_.substr(0, at);
        rest_.remove_prefix(at + 1);
        return text;
      }
    }
    return std::nullopt;
  }
  // `"key":`.
  std::optional<std::string_view> TakeKey() {
    const std::optional<std::string_view> key = TakeText();
    return key && Takes(':') ? key : std::nullopt;
  }

 private:
  void SkipBlanks() {
    while (!rest_.empty() && absl::ascii_isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// Behind a list's bracket.
bool BeginsRecords(JsonBeginning list) {
  JsonBeginning texts = list;
  if (list.Takes('{')) return list.TakeKey().has_value();
  for (int i = 0; i < 2; ++i) {
    if (!texts.TakeText() || !texts.Takes(',')) return false;
  }
  return texts.TakeText().has_value();
}

// A data set as one object: {"data": [{"text": ...}, ...]}, or a column after the other: {"text": {"0": ...}}.
bool IsObjectOfRecords(JsonBeginning text) {
  constexpr std::array<std::string_view, 8> kNames = {"data",    "train",   "rows",      "records",
                                                      "samples", "dataset", "instances", "examples"};
  if (!text.Takes('{')) return false;
  const std::optional<std::string_view> key = text.TakeKey();
  if (!key) return false;
  JsonBeginning column = text;
  if (column.Takes('{')) return column.TakeKey() == "0";
  return std::find(kNames.begin(), kNames.end(), *key) != kNames.end() && text.Takes('[') && BeginsRecords(text);
}

bool IsJsonRecords(std::string_view text) {
  JsonBeginning list(text);
  if (list.Takes('[')) return BeginsRecords(list);
  return IsObjectOfRecords(JsonBeginning(text));
}

}  // namespace

TextShape ShapeOf(std::string_view head) {
  const bool whole = head.size() < kTextHeadBytes;
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  if (IsJsonLines(head, whole)) return TextShape::kJsonLines;
  if (IsJsonRecords(head)) return TextShape::kJsonRecords;
  return HoldsSeparatedFields(head, whole) ? TextShape::kTable : TextShape::kPlain;
}

}  // namespace motley
