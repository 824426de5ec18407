#include "coordinator/state/slow_rank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace motley::coordinator {
namespace {

// A job is slow when its steps take so much longer than predicted, on average over the window.
constexpr double kSlowJob = 1.25;
// A rank holds up a step when its own work takes longer by this part of the predicted step, and so many times as much longer as
// that of any other. It is slow when it holds up so many steps of the window: what a host does to one rank or the other, now and
// then, names nobody.
constexpr double kPartOfStep = 0.25, kTimesTheNext = 2;
constexpr int kStepsHeldUp = 12;
constexpr size_t kOpenSteps = 4;

// What is the rank's own: not what it waits for.
double OwnSeconds(const LaneSeconds& lanes) { return lanes.busy[static_cast<size_t>(Lane::kCompute)] + lanes.host; }

}  // namespace

void SlowRankWatch::Begin(std::vector<DeviceId> devices, std::vector<LaneSeconds> predicted, double predicted_step_seconds) {
  *this = SlowRankWatch();
  devices_ = std::move(devices);
  for (const LaneSeconds& lanes : predicted) predicted_own_.push_back(OwnSeconds(lanes));
  predicted_step_seconds_ = predicted_step_seconds;
}

void SlowRankWatch::OnReport(int rank, int64_t step, double step_seconds, const LaneSeconds& lanes) {
  if (rank < 0 || static_cast<size_t>(rank) >= devices_.size()) return;
  if (devices_.size() < 2 || predicted_step_seconds_ <= 0) return;  // nobody waits for the only one
  Reports& reports = open_[step];
  if (reports.own.empty()) {
    reports.own.resize(devices_.size());
    reports.missing = devices_.size();
  }
  if (reports.own[rank]) return;
  reports.own[rank] = OwnSeconds(lanes);
  reports.seconds = std::max(reports.seconds, step_seconds);
  if (--reports.missing == 0) {
    Step whole{reports.seconds, {}};
    for (const std::optional<double>& own : reports.own) whole.own.push_back(*own);
    open_.erase(open_.begin(), open_.upper_bound(step));
    window_.push_back(std::move(whole));
    if (window_.size() > kWindow) window_.pop_front();
    Judge();
  }
  while (open_.size() > kOpenSteps) open_.erase(open_.begin());
}

std::optional<size_t> SlowRankWatch::WhoHoldsUp(const Step& step) const {
  const auto longer = [&](size_t rank) { return step.own[rank] - predicted_own_[rank]; };
  size_t worst = 0;
  for (size_t r = 1; r < devices_.size(); ++r) worst = longer(r) > longer(worst) ? r : worst;
  if (longer(worst) < kPartOfStep * predicted_step_seconds_) return std::nullopt;
  for (size_t r = 0; r < devices_.size(); ++r) {
    if (r != worst && kTimesTheNext * longer(r) > longer(worst)) return std::nullopt;
  }
  return worst;
}

void SlowRankWatch::Judge() {
  slow_.reset();
  if (window_.size() < kWindow) return;
  double seconds = 0;
  std::vector<int> held_up(devices_.size(), 0);
  for (const Step& step : window_) {
    seconds += step.seconds;
    if (const std::optional<size_t> rank = WhoHoldsUp(step)) ++held_up[*rank];
  }
  const size_t worst = std::max_element(held_up.begin(), held_up.end()) - held_up.begin();
  if (seconds < kSlowJob * kWindow * predicted_step_seconds_ || held_up[worst] < kStepsHeldUp) return;
  double own = 0;
  for (const Step& step : window_) own += step.own[worst];
  slow_ = Slow{devices_[worst], own / kWindow, predicted_own_[worst], seconds / kWindow};
}

std::string SlowRankWatch::Sentence(const JobId& job) const {
  if (!slow_) return "";
  const std::string device = slow_->device.value();
  return absl::StrFormat(
      "%s slows the job down: over %d steps its own work took %.3g s a step, predicted %.3g s, and the others wait for it (steps "
      "of "
      "%.3g s, predicted %.3g s); `motley plan %s --exclude %s` shows the plan without it, `motley nodes drain %s` takes its "
      "node out",
      device, kWindow, slow_->own_seconds, slow_->predicted_seconds, slow_->step_seconds, predicted_step_seconds_, job.value(),
      device, NodeOf(slow_->device).value());
}

}  // namespace motley::coordinator
