#include "coordinator/state/clock_offset.h"

#include <algorithm>

namespace motley::coordinator {
namespace {

constexpr size_t kKept = 8;
constexpr int64_t kRoundingMs = 2;                // both times are whole milliseconds
constexpr int64_t kMostMs = 100'000'000'000'000;  // 3,000 years: differences of such numbers do not overflow

}  // namespace

void ClockOffset::Add(int64_t worker_unix_ms, int64_t coordinator_unix_ms) {
  if (worker_unix_ms == 0) return;
  offsets_ms_.push_back(std::clamp(worker_unix_ms, -kMostMs, kMostMs) - std::clamp(coordinator_unix_ms, -kMostMs, kMostMs));
  if (offsets_ms_.size() > kKept) offsets_ms_.pop_front();
}

std::optional<ClockOffset::Estimate> ClockOffset::estimate() const {
  if (offsets_ms_.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(offsets_ms_.begin(), offsets_ms_.end());
  return Estimate{*most, *most - *least + kRoundingMs};
}

}  // namespace motley::coordinator
