#include "planner/plan/plan_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

// More of anything in one word is a slip of the keyboard, not a plan.
constexpr int64_t kLongestRun = 1 << 20;
constexpr size_t kMostDigits = 9;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

template <typename... Parts>
absl::Status Expected(std::string_view word, const Parts&... what) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what..., ", got ", Quoted(word)));
}

bool IsPlain(const std::string& name) {
  if (name.empty() || name.find("..") != std::string::npos) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '/' || c == '-' || c == '+' || c == '@';
  });
}

// "n1/gpu12" -> "n1/gpu", 12. False where the name does not end in a plain number.
bool SplitNumber(const std::string& name, std::string* prefix, int64_t* number) {
  size_t begin = name.size();
  while (begin > 0 && absl::ascii_isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
  const std::string digits = name.substr(begin);
  if (digits.empty() || digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0')) return false;
  *prefix = name.substr(0, begin);
  return absl::SimpleAtoi(digits, number);
}

// Like StrSplit at `separator`, but not inside quotes.
std::vector<std::string_view> SplitUnquoted(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == separator) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(std::min(begin, text.size())));
  return parts;
}

}  // namespace

std::string QuotedWord(const std::string& name) {
  if (IsPlain(name)) return name;
  return nlohmann::json(name).dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

std::string NumberText(double number, TextPrecision precision) {
  if (precision == TextPrecision::kRounded) return absl::StrFormat("%.3f", number);
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number);
  return std::string(digits, end.ptr);
}

std::string DevicesText(const std::vector<DeviceId>& devices) {
  std::string text;
  for (size_t i = 0; i < devices.size();) {
    const std::string& name = devices[i].value();
    size_t end = i + 1;
    std::string prefix, other;
    int64_t first = 0, number = 0;
    if (IsPlain(name) && SplitNumber(name, &prefix, &first)) {
      while (end < devices.size() && SplitNumber(devices[end].value(), &other, &number) && other == prefix &&
             number == first + static_cast<int64_t>(end - i)) {
        ++end;
      }
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", QuotedWord(name));
    if (end - i > 1) absl::StrAppend(&text, "..", first + static_cast<int64_t>(end - i) - 1);
    i = end;
  }
  return text;
}

std::string BatchText(const std::vector<int64_t>& microbatches) {
  std::string runs;
  int64_t batch = 0;
  for (size_t i = 0; i < microbatches.size();) {
    size_t end = i;
    while (end < microbatches.size() && microbatches[end] == microbatches[i]) batch += microbatches[end++];
    const bool counted = end - i > 1 || microbatches.size() == 1;
    absl::StrAppend(&runs, runs.empty() ? "" : "+", counted ? absl::StrCat(end - i, "x") : "", microbatches[i]);
    i = end;
  }
  return runs.empty() ? "0" : absl::StrCat(batch, " = ", runs);
}

std::string LayersText(const std::vector<LayerRange>& ministages) {
  std::string text;
  for (size_t i = 0; i < ministages.size();) {
    const int64_t first = ministages[i].first, size = ministages[i].last - first + 1;
    size_t end = i + 1;
    while (end < ministages.size() && ministages[end].first == ministages[end - 1].last + 1 &&
           ministages[end].last - ministages[end].first + 1 == size) {
      ++end;
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", first, "-", ministages[end - 1].last);
    if (end - i > 1) absl::StrAppend(&text, "/", size);
    i = end;
  }
  return text;
}

std::vector<std::string_view> SplitWords(std::string_view line) {
  std::vector<std::string_view> words;
  for (const std::string_view word : SplitUnquoted(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

absl::StatusOr<std::string> ReadWord(std::string_view word) {
  if (word.empty() || word[0] != '"') return std::string(word);
  const absl::StatusOr<nlohmann::json> parsed = ParseJson(word, "word");
  if (!parsed.ok() || !parsed->is_string()) return Expected(word, "a word or a quoted string");
  return parsed->get<std::string>();
}

absl::StatusOr<double> ReadNumber(std::string_view word) {
  double number = 0;
  if (!absl::SimpleAtod(Absl(word), &number) || !std::isfinite(number)) return Expected(word, "a number");
  return number;
}

absl::StatusOr<int64_t> ReadInteger(std::string_view word) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(Absl(word), &number)) return Expected(word, "a whole number");
  return number;
}

absl::StatusOr<std::vector<DeviceId>> ReadDevices(std::string_view word) {
  std::vector<DeviceId> devices;
  for (const std::string_view part : SplitUnquoted(word, ',')) {
    const size_t dots = part.rfind("..");
    if (part.empty()) return Expected(word, "devices such as n1/gpu0..7,n2/gpu0");
    if (part[0] == '"' || dots == std::string_view::npos) {
      MOTLEY_ASSIGN_OR_RETURN(std::string name, ReadWord(part));
      devices.emplace_back(std::move(name));
      continue;
    }
    std::string prefix;
    int64_t first = 0, last = 0;
    if (!SplitNumber(std::string(part.substr(0, dots)), &prefix, &first) ||
        !absl::SimpleAtoi(Absl(part.substr(dots + 2)), &last) || last < first ||
        last - first + static_cast<int64_t>(devices.size()) >= kLongestRun) {
      return Expected(part, "a range of devices such as n1/gpu0..7");
    }
    for (int64_t number = first; number <= last; ++number) devices.emplace_back(absl::StrCat(prefix, number));
  }
  return devices;
}

absl::StatusOr<std::vector<int64_t>> ReadRuns(std::string_view word) {
  std::vector<int64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(Absl(word), '+')) {
    const size_t x = part.find('x');
    int64_t count = 1, size = 0;
    const bool good = (x == absl::string_view::npos || absl::SimpleAtoi(part.substr(0, x), &count)) &&
                      absl::SimpleAtoi(x == absl::string_view::npos ? part : part.substr(x + 1), &size);
    if (!good || count < 1 || count + static_cast<int64_t>(sizes.size()) > kLongestRun || size < 1) {
      return Expected(word, "microbatches such as 2x4+3");
    }
    sizes.insert(sizes.end(), static_cast<size_t>(count), size);
  }
  return sizes;
}

absl::StatusOr<std::vector<LayerRange>> ReadLayers(std::string_view word) {
  std::vector<LayerRange> ranges;
  for (const absl::string_view part : absl::StrSplit(Absl(word), ',')) {
    const size_t dash = part.find('-'), slash = part.find('/');
    int64_t first = 0, last = 0, size = 0;
    bool good = dash != absl::string_view::npos && absl::SimpleAtoi(part.substr(0, dash), &first) &&
                absl::SimpleAtoi(part.substr(dash + 1, slash == absl::string_view::npos ? slash : slash - dash - 1), &last) &&
                first >= 0 && last >= first && last - first < kLongestRun;
    if (good && slash == absl::string_view::npos) size = last - first + 1;
    if (good && slash != absl::string_view::npos) good = absl::SimpleAtoi(part.substr(slash + 1), &size);
    if (!good || size < 1 || (last - first + 1) % size != 0) return Expected(word, "layers such as 0-5,12-17 or 0-31/8");
    for (int64_t begin = first; begin <= last; begin += size) ranges.push_back({begin, begin + size - 1});
  }
  return ranges;
}

}  // namespace motley::planner
