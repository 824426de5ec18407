#include "coordinator/state/slow_rank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace motley::coordinator {
namespace {

// A job is slow when its steps take so much longer than predicted, on average over the window; a step is, likewise. One that is
// called slow is so until it is clearly not, or a job near the border would change its mind all the time.
constexpr double kSlow = 1.25, kStaysSlow = 1.15;
// A rank holds up a step when every other rank waits for this part of what the step takes longer, and itself for hardly any of
// it.
constexpr double kOthersWait = 0.5, kItselfWaits = 0.3;
// It is slow when it holds up such a part of the window's steps, and so many for each one that others hold up: what a host does
// to one rank or another, now and then, names nobody.
constexpr double kHeldUp = 0.4, kStaysHeldUp = 0.35;
constexpr int kForOneByOthers = 9, kStaysForOneByOthers = 6;
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
  held_up_.resize(devices_.size());
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
    Add({reports.seconds, WhoHoldsUp(reports)});
    open_.erase(open_.begin(), open_.upper_bound(step));
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

// What is left of the window is as short as it may be.
void SlowRankWatch::Add(const Step& step) {
  const auto count = [this](const Step& of, int by) {
    window_seconds_ += by * of.seconds;
    if (!of.held_up_by) return;
    held_up_[*of.held_up_by] += by;
    all_held_up_ += by;
  };
  window_.push_back(step);
  count(step, 1);
  while (window_.size() > kWindow && window_seconds_ - window_.front().seconds >= kWindowSeconds) {
    count(window_.front(), -1);
    window_.pop_front();
  }
}

bool SlowRankWatch::IsSlow(size_t rank) const {
  const bool is_named = slow_ && slow_->device == devices_[rank];
  const auto steps = static_cast<double>(window_.size());
  const int by_others = all_held_up_ - held_up_[rank];
  return window_seconds_ >= (is_named ? kStaysSlow : kSlow) * steps * predicted_step_seconds_ &&
         held_up_[rank] >= (is_named ? kStaysHeldUp : kHeldUp) * steps &&
         held_up_[rank] >= (is_named ? kStaysForOneByOthers : kForOneByOthers) * by_others;
}

void SlowRankWatch::Judge() {
  const size_t worst = std::max_element(held_up_.begin(), held_up_.end()) - held_up_.begin();
  if (window_.size() < kWindow || window_seconds_ < kWindowSeconds || !IsSlow(worst)) return slow_.reset();
  const auto steps = static_cast<int>(window_.size());
  slow_ = Slow{devices_[worst], held_up_[worst], steps, window_seconds_ / steps};
}

std::string SlowRankWatch::Sentence(const JobId& job) const {
  if (!slow_) return "";
  const std::string device = slow_->device.value();
  return absl::StrFormat(
      "%s slows the job down: in %d of %d steps all others waited for it, and steps take %.3g s, predicted %.3g s; `motley plan "
      "%s "
      "--exclude %s` shows the plan without it, `motley nodes drain %s` takes its node out",
      device, slow_->steps, slow_->of, slow_->step_seconds, predicted_step_seconds_, job.value(), device,
      NodeOf(slow_->device).value());
}

}  // namespace motley::coordinator
