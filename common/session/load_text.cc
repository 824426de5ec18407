#include "common/session/load_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace motley {

std::string LoadText(const CardLoad& load) {
  std::vector<std::string> numbers;
  if (load.sm_clock_mhz > 0) numbers.push_back(absl::StrCat(load.sm_clock_mhz, " MHz"));
  if (load.watts > 0) {
    const std::string of = load.power_limit_watts > 0 ? absl::StrCat(" of ", load.power_limit_watts) : "";
    numbers.push_back(absl::StrFormat("%.1f%s W", load.watts, of));
  }
  std::vector<const char*> reasons;
  if (load.at_power_limit) reasons.push_back("its power limit");
  if (load.slowed_by_heat) reasons.push_back("heat");
  if (load.slowed_by_hardware) reasons.push_back("its own protection");
  std::vector<std::string> parts;
  if (!reasons.empty()) parts.push_back(absl::StrCat("held by ", absl::StrJoin(reasons, " and ")));
  if (!numbers.empty()) parts.push_back(absl::StrCat("at ", absl::StrJoin(numbers, " and ")));
  return absl::StrJoin(parts, " ");
}

std::string MeasuredText(const CardLoad& load, bool cut_short) {
  std::string text = LoadText(load);
  if (cut_short) absl::StrAppend(&text, text.empty() ? "" : ", ", "cut short");
  return text;
}

}  // namespace motley
