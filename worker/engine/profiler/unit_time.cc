#include "worker/engine/profiler/unit_time.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace motley::engine {
namespace {

constexpr double kLeastRuns = 2;  // of a series: one that fills the stream, one that counts
constexpr double kNextSize = 2;   // its runs are so much longer

}  // namespace

double UnitTime::RunsNeededAfter(size_t number, size_t series) const {
  const double at_this_size = kLeastRuns * static_cast<double>(series - 1 - number);
  return at_this_size + (took_.empty() ? kNextSize * kLeastRuns * static_cast<double>(series) : 0);
}

bool UnitTime::OthersFit(size_t series) {
  if (!took_.empty() || series == 1 || RunsLeft() >= 1 + RunsNeededAfter(0, series)) return true;
  left_out_.insert("halves and part");
  return false;
}

int UnitTime::RepeatsThatFit(size_t number, size_t series, int wanted) {
  const double fit = RunsLeft() - RunsNeededAfter(number, series) - (number == 0 ? 0 : 1);
  if (fit >= wanted) return wanted;
  left_out_.insert("repeated runs");
  return static_cast<int>(std::clamp<double>(fit, number == 0 ? 0 : 1, wanted));
}

bool UnitTime::NextSizeFits(int64_t samples, size_t series) {
  if (RunsLeft() >= kNextSize * kLeastRuns * static_cast<double>(series)) return true;
  left_out_.insert(absl::StrCat("microbatches from ", samples));
  return false;
}

bool UnitTime::AgainFits(int64_t samples) {
  if (Now() + took_[samples] <= end_) return true;
  left_out_.insert("disturbed microbatches again");
  return false;
}

void UnitTime::SayLeftOut(const std::string& unit) {
  if (!left_out_.empty()) time_.LeaveOut(absl::StrCat(unit, ": ", absl::StrJoin(left_out_, ", ")));
}

}  // namespace motley::engine
