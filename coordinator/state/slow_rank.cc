#include "coordinator/state/slow_rank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace motley::coordinator {
namespace {

// A job is slow when its steps take so much longer than predicted, on average over the window; a step is, likewise.
constexpr double kSlow = 1.25;
// A rank holds up a step when every other rank waits for this part of what the step takes longer, and itself for hardly any of
// it.
constexpr double kOthersWait = 0.5, kItselfWaits = 0.3;
// It is slow when it holds up so many steps of the window, and so many for each one that others hold up: what a host does to
// one rank or another, now and then, names nobody.
constexpr int kHeldUp = 6, kForOneByOthers = 9;
constexpr size_t kOpenSteps = 4;

// A collective begins for a rank when that rank is there, so the one that comes last has the shortest.
double WaitedSeconds(const LaneSeconds& lanes) {
  return lanes.busy[static_cast<size_t>(Lane::kCollective)] + lanes.hand_over + lanes.bubble;
}

}  // namespace

void SlowRankWatch::Begin(std::vector<DeviceId> devices, std::vector<LaneSeconds> predicted, double predicted_step_seconds) {
  *this = SlowRankWatch();
  devices_ = std::move(devices);
  for (const LaneSeconds& lanes : predicted) predicted_wait_.push_back(WaitedSeconds(lanes));
  predicted_step_seconds_ = predicted_step_seconds;
}

void SlowRankWatch::OnReport(int rank, int64_t step, double step_seconds, const LaneSeconds& lanes) {
  if (rank < 0 || static_cast<size_t>(rank) >= devices_.size()) return;
  if (devices_.size() < 2 || predicted_step_seconds_ <= 0) return;  // nobody waits for the only one
  Reports& reports = open_[step];
  if (reports.waited.empty()) {
    reports.waited.resize(devices_.size());
    reports.missing = devices_.size();
  }
  if (reports.waited[rank]) return;
  reports.waited[rank] = WaitedSeconds(lanes) - predicted_wait_[rank];
  reports.seconds = std::max(reports.seconds, step_seconds);
  if (--reports.missing == 0) {
    window_.push_back({reports.seconds, WhoHoldsUp(reports)});
    open_.erase(open_.begin(), open_.upper_bound(step));
    if (window_.size() > kWindow) window_.pop_front();
    Judge();
  }
  while (open_.size() > kOpenSteps) open_.erase(open_.begin());
}

std::optional<size_t> SlowRankWatch::WhoHoldsUp(const Reports& reports) const {
  const double longer = reports.seconds - predicted_step_seconds_;
  if (reports.seconds < kSlow * predicted_step_seconds_) return std::nullopt;
  const auto least = std::min_element(reports.waited.begin(), reports.waited.end());
  if (**least > kItselfWaits * longer) return std::nullopt;
  const bool others_wait = std::all_of(reports.waited.begin(), reports.waited.end(), [&](const std::optional<double>& waited) {
    return &waited == &*least || *waited >= kOthersWait * longer;
  });
  return others_wait ? std::optional<size_t>(least - reports.waited.begin()) : std::nullopt;
}

void SlowRankWatch::Judge() {
  slow_.reset();
  if (window_.size() < kWindow) return;
  double seconds = 0;
  int all = 0;
  std::vector<int> held_up(devices_.size(), 0);
  for (const Step& step : window_) {
    seconds += step.seconds;
    if (!step.held_up_by) continue;
    ++held_up[*step.held_up_by];
    ++all;
  }
  const size_t worst = std::max_element(held_up.begin(), held_up.end()) - held_up.begin();
  if (seconds < kSlow * kWindow * predicted_step_seconds_) return;
  if (held_up[worst] < kHeldUp || held_up[worst] < kForOneByOthers * (all - held_up[worst])) return;
  slow_ = Slow{devices_[worst], held_up[worst], seconds / kWindow};
}

std::string SlowRankWatch::Sentence(const JobId& job) const {
  if (!slow_) return "";
  const std::string device = slow_->device.value();
  return absl::StrFormat(
      "%s slows the job down: in %d of %d steps all others waited for it, and steps take %.3g s, predicted %.3g s; `motley plan "
      "%s "
      "--exclude %s` shows the plan without it, `motley nodes drain %s` takes its node out",
      device, slow_->steps, kWindow, slow_->step_seconds, predicted_step_seconds_, job.value(), device,
      NodeOf(slow_->device).value());
}

}  // namespace motley::coordinator
