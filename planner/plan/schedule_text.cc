// The text forms of a schedule's parts.
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/clean_text.h"
#include "common/base/status_macros.h"
#include "planner/plan/schedule.h"

namespace motley::planner {
namespace {

constexpr std::array<std::pair<char, ActionKind>, 4> kLetters = {{{'F', ActionKind::kForward},
                                                                  {'B', ActionKind::kBackward},
                                                                  {'I', ActionKind::kInputGradient},
                                                                  {'W', ActionKind::kWeightGradient}}};
// Actions that may recur together; how often they must, and how many a repeat must stand for, to be easier to read than they are.
constexpr size_t kLongestRepeated = 256, kLeastTimes = 3, kLeastCovered = 12;

std::string ToText(const Action& action) {
  std::string text = absl::StrCat(action.virtual_stage);
  for (const auto& [letter, kind] : kLetters) {
    if (kind == action.kind) text += letter;
  }
  absl::StrAppend(&text, action.first);
  if (action.last > action.first + 1) absl::StrAppend(&text, "-", action.last - 1);
  return text;
}

Action Shifted(Action action, int64_t by) {
  action.first += by;
  action.last += by;
  return action;
}

// How often the `length` actions at `begin` follow each other, `by` further each time.
struct Repeat {
  size_t length = 1, times = 1;
  int64_t by = 0;
};

Repeat RepeatAt(const std::vector<Action>& actions, size_t begin, size_t length) {
  Repeat repeat{length, 1, actions[begin + length].first - actions[begin].first};
  for (size_t i = begin; i + length < actions.size() && actions[i + length] == Shifted(actions[i], repeat.by); ++i) {
    repeat.times = (i + 1 - begin) / length + 1;
  }
  return repeat;
}

// What covers most of what begins there.
Repeat LongestRepeatAt(const std::vector<Action>& actions, size_t begin) {
  Repeat best;
  const size_t most = std::min(kLongestRepeated, (actions.size() - begin) / kLeastTimes);
  for (size_t length = 1; length <= most; ++length) {
    const Repeat repeat = RepeatAt(actions, begin, length);
    const size_t covered = repeat.length * repeat.times;
    if (repeat.times < kLeastTimes || covered < kLeastCovered || repeat.by < 0) continue;
    if (covered > best.length * best.times) best = repeat;
  }
  return best;
}

absl::Status Wrong(absl::string_view word, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("schedule: ", Quoted(std::string(word)), " is not ", expected));
}

bool ReadNumber(absl::string_view text, int64_t* number) {
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  constexpr int64_t kMost = int64_t{1} << 31;
  return std::all_of(text.begin(), text.end(), is_digit) && absl::SimpleAtoi(text, number) && *number < kMost;
}

absl::StatusOr<Action> ParseAction(absl::string_view word) {
  constexpr absl::string_view kExpected = "an action like 2F0 or 2F0-7 (virtual stage; F, B, I or W; first and last microbatch)";
  const size_t at = word.find_first_of("FBIW");
  int64_t virtual_stage = 0, first = 0, last = 0;
  if (at == absl::string_view::npos || !ReadNumber(word.substr(0, at), &virtual_stage)) return Wrong(word, kExpected);
  const std::pair<absl::string_view, absl::string_view> range = absl::StrSplit(word.substr(at + 1), absl::MaxSplits('-', 1));
  if (!ReadNumber(range.first, &first)) return Wrong(word, kExpected);
  last = first;
  const bool has_last = word.find('-') != absl::string_view::npos;
  if (has_last && (!ReadNumber(range.second, &last) || last < first)) return Wrong(word, kExpected);
  for (const auto& [letter, kind] : kLetters) {
    if (letter == word[at]) return Action{kind, static_cast<int32_t>(virtual_stage), first, last + 1};
  }
  return Wrong(word, kExpected);
}

// Behind ")": "x250+1".
absl::StatusOr<Repeat> ParseTimes(absl::string_view word, size_t length) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, absl::MaxSplits('+', 1));
  int64_t times = 0, by = 0;
  absl::string_view count = parts.first;
  if (!absl::ConsumePrefix(&count, "x") || !ReadNumber(count, &times) || times < 1 || !ReadNumber(parts.second, &by)) {
    return Wrong(absl::StrCat(")", word), "the end of a repeat like )x250+1 (times, and how much further each time)");
  }
  return Repeat{length, static_cast<size_t>(times), by};
}

}  // namespace

std::string ToText(const std::vector<Action>& actions) {
  std::string text;
  for (size_t i = 0; i < actions.size();) {
    const Repeat repeat = LongestRepeatAt(actions, i);
    const bool recurs = repeat.times > 1;
    absl::StrAppend(&text, i > 0 ? " " : "", recurs ? "(" : "");
    for (size_t j = 0; j < repeat.length; ++j) absl::StrAppend(&text, j > 0 ? " " : "", ToText(actions[i + j]));
    if (recurs) absl::StrAppend(&text, ")x", repeat.times, "+", repeat.by);
    i += repeat.length * repeat.times;
  }
  return text;
}

absl::StatusOr<std::vector<Action>> ParseActions(std::string_view text, int64_t most) {
  std::vector<Action> actions;
  size_t begin = 0;
  bool open = false;
  for (absl::string_view word : absl::StrSplit(absl::string_view(text.data(), text.size()), ' ', absl::SkipEmpty())) {
    const absl::string_view whole = word;
    if (absl::ConsumePrefix(&word, "(")) {
      if (open) return Wrong(whole, "allowed inside a repeat");
      open = true;
      begin = actions.size();
    }
    const size_t close = word.find(')');
    MOTLEY_ASSIGN_OR_RETURN(const Action action, ParseAction(word.substr(0, close)));
    actions.push_back(action);
    if (close != absl::string_view::npos) {
      if (!open) return Wrong(whole, "allowed outside of a repeat");
      open = false;
      const size_t length = actions.size() - begin;
      MOTLEY_ASSIGN_OR_RETURN(const Repeat repeat, ParseTimes(word.substr(close + 1), length));
      if (repeat.times > static_cast<size_t>(most) / length)
        return Wrong(whole, absl::StrCat("one of ", most, " actions at most"));
      for (size_t i = begin; i < begin + length * (repeat.times - 1); ++i) actions.push_back(Shifted(actions[i], repeat.by));
    }
    if (static_cast<int64_t>(actions.size()) > most) return Wrong(whole, absl::StrCat("one of ", most, " actions at most"));
  }
  if (open) return Wrong("(", "closed");
  return actions;
}

std::string ToText(const MemberMicrobatches& microbatches) {
  std::string text;
  for (size_t k = 0; k < microbatches.size(); ++k) {
    const ScheduledMicrobatch& m = microbatches[k];
    absl::StrAppend(&text, k > 0 ? " " : "", m.samples, "@", m.first);
    if (m.round != static_cast<int64_t>(k)) absl::StrAppend(&text, ":", m.round);
  }
  return text;
}

absl::StatusOr<MemberMicrobatches> ParseMicrobatches(std::string_view text) {
  MemberMicrobatches microbatches;
  for (const absl::string_view word : absl::StrSplit(absl::string_view(text.data(), text.size()), ' ', absl::SkipEmpty())) {
    ScheduledMicrobatch m;
    m.round = static_cast<int64_t>(microbatches.size());
    const std::pair<absl::string_view, absl::string_view> round = absl::StrSplit(word, absl::MaxSplits(':', 1));
    const std::pair<absl::string_view, absl::string_view> samples = absl::StrSplit(round.first, absl::MaxSplits('@', 1));
    const bool named = word.find(':') != absl::string_view::npos;
    if (!ReadNumber(samples.first, &m.samples) || !ReadNumber(samples.second, &m.first) ||
        (named && !ReadNumber(round.second, &m.round))) {
      return Wrong(word, "a microbatch like 4@12 or 4@12:3 (samples, the first of them, its round)");
    }
    microbatches.push_back(m);
  }
  return microbatches;
}

}  // namespace motley::planner
