#include "planner/plan/schedule_family.h"

#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"

namespace motley::planner {
namespace {

constexpr VirtualStageMap kRound = VirtualStageMap::kRoundRobin;

// By the enumerator's value.
// clang-format off
constexpr std::array<ScheduleTraits, 6> kFamilies = {{
    //                                            by_ministage  alternates    splits_backward  ministages
    //                                            |      keeps_all     takes_in_flight   fixed_order  map
    {ScheduleFamily::kLayered,     "layered",     true,  true,  false, false, false,     false,    0, kRound},
    {ScheduleFamily::kGPipe,       "gpipe",       false, true,  false, false, false,     true,     1, kRound},
    {ScheduleFamily::k1F1B,        "1f1b",        false, false, true,  true,  false,     false,    1, kRound},
    {ScheduleFamily::kInterleaved, "interleaved", false, false, true,  false, false,     false,    0, kRound},
    {ScheduleFamily::kZeroBubble,  "zero_bubble", false, false, true,  true,  true,      false,    1, kRound},
    {ScheduleFamily::kZeroBubbleV, "zb_v",        false, false, true,  false, true,      true,     2, VirtualStageMap::kV},
}};
// clang-format on

constexpr bool InOrder() {
  for (size_t i = 0; i < kFamilies.size(); ++i) {
    if (static_cast<size_t>(kFamilies[i].family) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "a row of kFamilies is not at its enumerator's value");

}  // namespace

const ScheduleTraits& TraitsOf(ScheduleFamily family) { return kFamilies[static_cast<size_t>(family)]; }

int64_t WeightsPutOff(ScheduleFamily family, int64_t stage) {
  const ScheduleTraits& traits = TraitsOf(family);
  return traits.splits_backward && !traits.fixed_order ? stage : 0;
}

std::string NamesOf(absl::FunctionRef<bool(const ScheduleTraits&)> holds, const char* conjunction) {
  std::vector<std::string> names;
  for (const ScheduleTraits& traits : kFamilies) {
    if (holds(traits)) names.emplace_back(traits.name);
  }
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    if (i > 0) text += last ? absl::StrCat(" ", conjunction, " ") : ", ";
    text += names[i];
  }
  return text;
}

std::string_view ScheduleName(ScheduleFamily schedule) { return TraitsOf(schedule).name; }

absl::StatusOr<ScheduleFamily> ParseSchedule(std::string_view name) {
  std::vector<std::string> known;
  std::string list;
  for (const ScheduleTraits& traits : kFamilies) {
    if (traits.name == name) return traits.family;
    known.emplace_back(traits.name);
    absl::StrAppend(&list, list.empty() ? "" : ", ", known.back());
  }
  const std::string nearest = NearestWord(name, known);
  return absl::InvalidArgumentError(
      absl::StrCat("schedule ", Quoted(name), " is not known; ",
                   nearest.empty() ? absl::StrCat("use one of ", list) : absl::StrCat("did you mean '", nearest, "'?")));
}

}  // namespace motley::planner
