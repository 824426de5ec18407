#include "common/base/duration_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace motley {
namespace {

// The smaller unit is left out where there is nothing of it.
std::string TwoUnits(int64_t count, int64_t ratio, const char* large, const char* small) {
  const std::string whole = absl::StrCat(count / ratio, " ", large);
  return count % ratio == 0 ? whole : absl::StrCat(whole, absl::StrFormat(" %02d ", count % ratio), small);
}

}  // namespace

std::string DurationText(absl::Duration duration) {
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (duration < absl::ZeroDuration()) return absl::StrCat("-", DurationText(-duration));
  if (duration == absl::InfiniteDuration()) return "for ever";
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds > 0 && seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < kMinute) return absl::StrFormat("%.3g s", seconds);
  if (whole < kHour) return TwoUnits(whole, kMinute, "min", "s");
  if (whole < 2 * kDay) return TwoUnits(whole / kMinute, kHour / kMinute, "h", "min");
  return TwoUnits(whole / kHour, kDay / kHour, "d", "h");
}

}  // namespace motley
