#include "planner/util/quantity_text.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace motley::planner {

std::string SecondsText(double seconds) {
  if (seconds >= 10) return absl::StrFormat("%.1f s", seconds);
  if (seconds >= 1) return absl::StrFormat("%.2f s", seconds);
  if (seconds >= 0.01) return absl::StrFormat("%.0f ms", seconds * 1e3);
  return absl::StrFormat("%.2f ms", seconds * 1e3);
}

std::string BytesText(int64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return absl::StrFormat("%.1f GiB", b / (1 << 30));
  if (bytes >= 1 << 20) return absl::StrFormat("%.1f MiB", b / (1 << 20));
  if (bytes >= 1 << 10) return absl::StrFormat("%.1f KiB", b / (1 << 10));
  return absl::StrFormat("%d B", bytes);
}

std::string CountText(double count) {
  if (count >= 99.95e6) return absl::StrFormat("%.0f M", count / 1e6);
  return count >= 1e6 ? absl::StrFormat("%.1f M", count / 1e6) : absl::StrFormat("%.0f", count);
}

std::string ChangeText(double part, std::string_view more, std::string_view less) {
  const double percent = 100 * std::abs(part);
  if (percent < 0.05) return "no difference";
  return absl::StrFormat("%.1f %% %s", percent, std::string(part > 0 ? more : less));
}

}  // namespace motley::planner
