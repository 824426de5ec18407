#include "planner/plan/plan.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"

namespace motley::planner {
namespace {

constexpr std::array<std::pair<ScheduleFamily, std::string_view>, 5> kSchedules = {{
    {ScheduleFamily::kLayered, "layered"},
    {ScheduleFamily::kGPipe, "gpipe"},
    {ScheduleFamily::k1F1B, "1f1b"},
    {ScheduleFamily::kInterleaved, "interleaved"},
    {ScheduleFamily::kZeroBubble, "zero_bubble"},
}};

}  // namespace

std::string_view ScheduleName(ScheduleFamily schedule) {
  for (const auto& [family, name] : kSchedules) {
    if (family == schedule) return name;
  }
  return "unknown";
}

absl::StatusOr<ScheduleFamily> ParseSchedule(std::string_view name) {
  std::vector<std::string> known;
  std::string list;
  for (const auto& [family, known_name] : kSchedules) {
    if (known_name == name) return family;
    known.emplace_back(known_name);
    absl::StrAppend(&list, list.empty() ? "" : ", ", known.back());
  }
  const std::string nearest = NearestWord(name, known);
  return absl::InvalidArgumentError(
      absl::StrCat("schedule ", Quoted(name), " is not known; ",
                   nearest.empty() ? absl::StrCat("use one of ", list) : absl::StrCat("did you mean '", nearest, "'?")));
}

}  // namespace motley::planner
