#include "coordinator/state/copy_rate.h"

#include <algorithm>

namespace motley::coordinator {
namespace {

constexpr int64_t kLeast = 64 << 10, kMost = int64_t{100} << 30;  // bytes a second
constexpr size_t kSteps = 20, kLeastSteps = 5;
constexpr double kTooMuch = 1.02, kLittle = 1.01, kSlower = 0.5, kFaster = 1.5;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Push(std::vector<double>& values, double value) {
  if (values.size() == kSteps) values.erase(values.begin());
  values.push_back(value);
}

}  // namespace

int64_t CopyRate::bytes_per_second() const { return pausing_ ? kLeast : bytes_per_second_; }

void CopyRate::OnStep(double seconds, bool copying) {
  if (!(seconds > 0)) return;
  Push(copying && !pausing_ ? with_ : without_, seconds);
  pausing_ = without_.size() < kLeastSteps && (pausing_ || with_.size() == kSteps);
  if (with_.size() < kSteps || without_.size() < kLeastSteps) return;
  const double ratio = Median(with_) / Median(without_);
  with_.clear();
  const double change = ratio > kTooMuch ? kSlower : ratio < kLittle ? kFaster : 1;
  bytes_per_second_ = std::clamp(static_cast<int64_t>(static_cast<double>(bytes_per_second_) * change), kLeast, kMost);
}

}  // namespace motley::coordinator
