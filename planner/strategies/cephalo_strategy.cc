// cephalo (arXiv 2411.01075) on a setting.
//
// Tuned: the exact split of eq. 2 and 3; batch 0, share 0 and recomputation or not are free for every device; with and without
// offload; a node or a device by itself where the network costs more than the others bring. As published: cephalo_group.h.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "planner/costs/memory_model.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/price.h"
#include "planner/published/cephalo_group.h"
#include "planner/split/group_split.h"
#include "planner/split/group_tables.h"
#include "planner/strategies/catalog.h"
#include "planner/strategies/one_stage.h"
#include "planner/util/quantity_text.h"

namespace motley::planner {
namespace {

bool IsPinned(const Setting& setting, int device) { return setting.pinned_stage[device] >= 0; }

GroupQuestion Question(const Setting& setting, std::vector<int> devices, bool offload) {
  GroupQuestion question;
  question.devices = std::move(devices);
  question.batch = setting.workload.global_batch;
  question.layers = setting.workload.model.num_layers;
  question.embedding = question.head = true;
  question.zero_stage = setting.request.zero_stage.value_or(3);
  question.ministages = question.zero_stage == 3 ? 1 : question.layers;
  question.offload.activations = offload;
  return question;
}

Plan ToPlan(const Setting& setting, const GroupQuestion& question, const GroupAnswer& answer, const std::string& because) {
  StagePlan stage = ToStage(setting, answer, question.zero_stage, question.offload);
  for (UnitPlan& unit : stage.units) {
    for (RankPlan& rank : unit.ranks) rank.offload.activations &= unit.batch() > 0;
  }
  return OneStagePlan(setting, "cephalo", ScheduleFamily::kLayered, question.layers / question.ministages, std::move(stage),
                      because);
}

// Leaves out devices that got no samples, as long as the rest is as fast without their memory.
void DropIdle(const Setting& setting, GroupQuestion* question, GroupAnswer* answer) {
  const std::vector<GroupMember> members = answer->members;
  for (const GroupMember& member : members) {
    if (question->devices.size() == 1 || member.batch > 0 || IsPinned(setting, member.device)) continue;
    GroupQuestion fewer = *question;
    std::erase(fewer.devices, member.device);
    absl::StatusOr<GroupAnswer> without = SplitGroup(setting, fewer);
    if (!without.ok()) continue;
    const double now = answer->forward_seconds + answer->backward_seconds;
    if (without->forward_seconds + without->backward_seconds > now * (1 + 1e-9)) continue;
    *question = std::move(fewer);
    *answer = *std::move(without);
  }
}

// Seconds below which a device of this kind cannot process a sample: a microbatch is no faster than one of fewer samples, so
// doubling steps with half their rate bound all sizes between.
double LeastSecondsPerSample(const Setting& setting, int kind) {
  const Costs& costs = setting.costs;
  const auto layers = static_cast<double>(setting.workload.model.num_layers);
  double least = std::numeric_limits<double>::infinity();
  for (double m = 1; m <= static_cast<double>(setting.workload.global_batch); m *= 2) {
    double seconds = 0;
    for (const auto& [unit, times] :
         {std::pair(UnitKind::kEmbedding, 1.0), std::pair(UnitKind::kLayer, layers), std::pair(UnitKind::kHead, 1.0)}) {
      seconds += times * (costs.ForwardSeconds(kind, unit, m) + costs.BackwardSeconds(kind, unit, m));
    }
    least = std::min(least, seconds / (2 * m));
  }
  return least;
}

std::vector<int> AllDevices(const Setting& setting) {
  std::vector<int> devices(setting.cluster.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

// Some devices that could train faster than `seconds` without the others: one node of each make, one device of each kind. Nearly
// always none: only slow links make several devices slower than few.
std::vector<std::vector<int>> FewThatCouldBeat(const Setting& setting, double seconds) {
  std::vector<std::vector<int>> few;
  const std::vector<int> all = AllDevices(setting);
  if (all.size() < 2 || std::any_of(all.begin(), all.end(), [&](int d) { return IsPinned(setting, d); })) return few;
  std::vector<double> rates;  // by kind: samples a second, at most
  for (int kind = 0; kind < setting.costs.num_kinds(); ++kind) rates.push_back(1 / LeastSecondsPerSample(setting, kind));
  const auto batch = static_cast<double>(setting.workload.global_batch);
  const auto offer = [&](const std::vector<int>& devices) {
    double rate = 0;
    for (const int d : devices) rate += rates[setting.KindOf(d)];
    const bool known = std::find(few.begin(), few.end(), devices) != few.end();
    if (devices.size() < all.size() && !known && batch / rate < seconds) few.push_back(devices);
  };
  std::set<std::tuple<std::vector<int>, double, double>> makes;
  for (const ClusterNode& node : setting.cluster.nodes) {
    std::vector<int> kinds;
    for (const int d : node.devices) kinds.push_back(setting.KindOf(d));
    if (makes.insert({kinds, node.device_link_bytes_per_second, node.host_link_bytes_per_second}).second) offer(node.devices);
  }
  std::set<int> kinds;
  for (const int d : all) {
    if (kinds.insert(setting.KindOf(d)).second) offer({d});
  }
  return few;
}

// What leaving devices out is explained with.
constexpr char kNotNeeded[] = "the step is no faster with it, and its memory is not needed";
constexpr char kNetworkCosts[] = "the network would cost more than it saves";

// Copies to the host take what no price has: its memory's bandwidth, and on cards some of the collectives'. So they are to pay by
// more than that, or nothing fits without them.
constexpr double kLeastOffloadGain = 0.01;

class Tuned {
 public:
  explicit Tuned(const Setting& setting) : setting_(setting) {}

  absl::StatusOr<Plan> Run() {
    MOTLEY_RETURN_IF_ERROR(Try(Roomy(), kNotNeeded));
    for (const std::vector<int>& few : FewThatCouldBeat(setting_, best_seconds_)) MOTLEY_RETURN_IF_ERROR(Try(few, kNetworkCosts));
    if (!best_) return why_not_;
    for (UnusedDevice& unused : best_->unused) SayWhereTooSmall(&unused);
    return *std::move(best_);
  }

 private:
  absl::Status Try(const std::vector<int>& devices, const char* because) {
    for (const bool offload : {false, true}) {
      if (offload && !setting_.MayOffload().activations) continue;
      GroupQuestion question = Question(setting_, devices, offload);
      absl::StatusOr<GroupAnswer> answer = SplitGroup(setting_, question);
      if (!answer.ok()) {
        if (why_not_.ok()) why_not_ = answer.status();
        continue;
      }
      DropIdle(setting_, &question, &*answer);
      Plan plan = ToPlan(setting_, question, *answer, because);
      MOTLEY_ASSIGN_OR_RETURN(const QuickPrice price, EstimatePlan(setting_, plan));
      if (price.step_seconds >= best_seconds_ * (offload ? 1 - kLeastOffloadGain : 1)) continue;
      // The closed form of offload may be short by a little: what fits without is not given up for what does not.
      if (offload && best_ && !FitsAsScheduled(setting_, plan).ok()) continue;
      best_seconds_ = price.step_seconds;
      best_ = std::move(plan);
    }
    return absl::OkStatus();
  }

  // What a device lacks to hold context and buffers, without which it cannot take part at all; 0 or less: it can.
  int64_t Missing(int device, int64_t* needed) const {
    const RankDuty duty = DutyOf(setting_, Question(setting_, AllDevices(setting_), false), device, 0, false);
    *needed = MemoryOf(setting_.costs, duty, 0, 0, 0).total();
    return *needed - setting_.UsableBytes(device);
  }

  std::vector<int> Roomy() const {
    std::vector<int> devices = AllDevices(setting_);
    int64_t needed = 0;
    std::erase_if(devices, [&](int d) { return !IsPinned(setting_, d) && Missing(d, &needed) > 0; });
    return devices.empty() ? AllDevices(setting_) : devices;
  }

  void SayWhereTooSmall(UnusedDevice* unused) const {
    const int device = setting_.FindDevice(unused->device);
    int64_t needed = 0;
    const int64_t missing = device < 0 ? 0 : Missing(device, &needed);
    if (missing <= 0) return;
    unused->because =
        absl::StrCat("context and buffers need ", BytesText(needed), ", ", BytesText(missing), " more than its usable memory");
  }

  const Setting& setting_;
  std::optional<Plan> best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  absl::Status why_not_;
};

}  // namespace

absl::StatusOr<Plan> PlanCephalo(const Setting& setting) {
  MOTLEY_RETURN_IF_ERROR(CheckOneStage(setting, "cephalo"));
  if (setting.request.fidelity == Fidelity::kTuned) return Tuned(setting).Run();
  const GroupQuestion question = PublishedCephalo(setting, Question(setting, AllDevices(setting), false));
  MOTLEY_ASSIGN_OR_RETURN(const GroupAnswer answer, SplitGroupByEquation4(setting, question));
  return ToPlan(setting, question, answer, "");
}

}  // namespace motley::planner
