#include "planner/plan/plan_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"

namespace motley::planner {
namespace {

constexpr size_t kMostDigits = 9;

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

}  // namespace

std::string QuotedWord(const std::string& name) {
  if (IsPlain(name)) return name;
  return nlohmann::json(name).dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

std::string ShareText(double share) { return absl::StrFormat("%.3f", share); }

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

std::string_view WordOf(OptimizerSteps steps) { return steps == OptimizerSteps::kInTurn ? "in_turn" : "at_end"; }

absl::StatusOr<OptimizerSteps> ParseOptimizerSteps(std::string_view word) {
  for (const OptimizerSteps steps : {OptimizerSteps::kAtEnd, OptimizerSteps::kInTurn}) {
    if (WordOf(steps) == word) return steps;
  }
  return absl::InvalidArgumentError(absl::StrCat("optimizer_steps ", Quoted(std::string(word)), " is not known; use ",
                                                 std::string(WordOf(OptimizerSteps::kAtEnd)), " or ",
                                                 std::string(WordOf(OptimizerSteps::kInTurn))));
}

}  // namespace motley::planner
