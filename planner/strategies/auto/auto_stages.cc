#include "planner/strategies/auto/auto_stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/search/plan_moves.h"
#include "planner/setting/blank_plan.h"
#include "planner/split/group_split.h"

namespace motley::planner {
namespace {

constexpr double kSplitTolerance = 1e-3;  // finer than the estimator that compares the plans
constexpr double kNever = std::numeric_limits<double>::infinity();

class StageBalancer {
 public:
  StageBalancer(const Setting& setting, const StagesChoice& choice, SearchBudget* budget)
      : setting_(setting), choice_(choice), budget_(budget), answers_(choice.groups.size()) {}

  absl::StatusOr<Plan> Build() {
    const int64_t layers = setting_.workload.model.num_layers;
    const auto stages = static_cast<int64_t>(choice_.groups.size());
    const int64_t ministages = stages == 1 ? layers : choice_.ministages;
    if (stages * ministages > layers) {
      return absl::ResourceExhaustedError(
          absl::StrCat(stages, " stages of ", ministages, " ministages need more than the model's ", layers, " layers"));
    }
    ministages_ = ministages;
    counts_ = Proportional(layers);
    Balance();
    return Assemble();
  }

 private:
  // Samples a second of a layer, summed over the group's devices at a size that is neither launch nor memory bound.
  double Speed(const std::vector<int>& group) const {
    const double samples = std::clamp<double>(
        static_cast<double>(setting_.workload.global_batch) / static_cast<double>(std::max<size_t>(1, group.size())), 1, 8);
    double speed = 0;
    for (const int device : group) {
      const int kind = setting_.KindOf(device);
      speed += samples / (2 * setting_.costs.ForwardSeconds(kind, UnitKind::kLayer, samples) +
                          setting_.costs.BackwardSeconds(kind, UnitKind::kLayer, samples));
    }
    return speed;
  }

  std::vector<int64_t> Proportional(int64_t layers) const {
    std::vector<double> speeds;
    for (const std::vector<int>& group : choice_.groups) speeds.push_back(Speed(group));
    const double total = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    std::vector<int64_t> counts;
    int64_t left = layers;
    for (const double speed : speeds) {
      counts.push_back(std::max(ministages_, static_cast<int64_t>(std::floor(static_cast<double>(layers) * speed / total))));
      left -= counts.back();
    }
    // What rounding left goes to, or comes from, the stage that has the fewest, or most, layers for its speed.
    while (left != 0) {
      size_t best = counts.size();
      for (size_t s = 0; s < counts.size(); ++s) {
        if (left < 0 && counts[s] <= ministages_) continue;
        const double load = static_cast<double>(counts[s]) / speeds[s];
        if (best == counts.size() || (left > 0 ? load < static_cast<double>(counts[best]) / speeds[best]
                                               : load > static_cast<double>(counts[best]) / speeds[best])) {
          best = s;
        }
      }
      counts[best] += left > 0 ? 1 : -1;
      left += left > 0 ? -1 : 1;
    }
    return counts;
  }

  // Activations of each device whose node offers host memory. Shares of a group count alike, so of state all of it or nobody.
  OffloadKinds Offloads(size_t stage) const {
    const std::vector<int>& group = choice_.groups[stage];
    const auto offers = [this](int device) { return setting_.OffersHost(device); };
    OffloadKinds kinds;
    if (std::all_of(group.begin(), group.end(), offers)) kinds = choice_.offload;
    kinds.activations = choice_.offload.activations && std::any_of(group.begin(), group.end(), offers);
    return kinds;
  }

  GroupQuestion Question(size_t stage, int64_t layers) const {
    GroupQuestion question;
    question.devices = choice_.groups[stage];
    question.batch = setting_.workload.global_batch;
    question.layers = layers;
    question.ministages = choice_.groups.size() == 1 ? layers : ministages_;
    question.schedule = ScheduleFamily::kLayered;
    question.tolerance = kSplitTolerance;
    question.embedding = stage == 0;
    question.head = stage + 1 == choice_.groups.size();
    question.stage = static_cast<int>(stage);
    question.num_stages = static_cast<int>(choice_.groups.size());
    question.zero_stage = choice_.zero_stage;
    question.offload = Offloads(stage);
    return question;
  }

  const std::optional<GroupAnswer>& Answer(size_t stage, int64_t layers) {
    const auto [at, is_new] = answers_[stage].try_emplace(layers);
    if (is_new && budget_->Spend(kGroupNodes)) {
      if (auto answer = SplitGroup(setting_, Question(stage, layers)); answer.ok()) {
        at->second = *std::move(answer);
      } else {
        why_not_ = answer.status();
      }
    }
    return at->second;
  }
  double Seconds(size_t stage, int64_t layers) {
    const std::optional<GroupAnswer>& answer = Answer(stage, layers);
    return answer ? answer->forward_seconds + answer->backward_seconds : kNever;
  }

  // The receiver that ends soonest with one layer more; counts_.size() when none ends sooner than `limit`.
  size_t Receiver(size_t from, double limit) {
    size_t best = counts_.size();
    double best_seconds = limit;
    for (size_t s = 0; s < counts_.size(); ++s) {
      if (s == from) continue;
      const double seconds = Seconds(s, counts_[s] + 1);
      if (seconds < best_seconds) {
        best = s;
        best_seconds = seconds;
      }
    }
    return best;
  }

  void Balance() {
    for (int64_t moves = 0; moves < 2 * setting_.workload.model.num_layers; ++moves) {
      size_t worst = 0;
      for (size_t s = 1; s < counts_.size(); ++s) {
        if (Seconds(s, counts_[s]) > Seconds(worst, counts_[worst])) worst = s;
      }
      if (counts_[worst] <= ministages_) return;
      const size_t to = Receiver(worst, Seconds(worst, counts_[worst]));
      if (to == counts_.size()) return;
      --counts_[worst];
      ++counts_[to];
    }
  }

  absl::StatusOr<Plan> Assemble() {
    Plan plan = BlankPlan(setting_, "auto", ScheduleFamily::kLayered);
    plan.pipelines.resize(1);
    std::vector<UnusedDevice> idle;
    for (size_t s = 0; s < counts_.size(); ++s) {
      const std::optional<GroupAnswer>& answer = Answer(s, counts_[s]);
      if (!answer) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "stage ", s, " with ", counts_[s],
            " layers: ", why_not_.ok() ? std::string("the search budget is spent") : std::string(why_not_.message())));
      }
      plan.pipelines[0].stages.push_back(ToStage(setting_, *answer, choice_.zero_stage, Offloads(s)));
      for (const GroupMember& member : answer->members) {
        if (member.batch > 0 || member.share > 0) continue;
        idle.push_back({setting_.cluster.devices[member.device].id, "neither its speed nor its memory makes the step shorter"});
      }
    }
    plan.unused.insert(plan.unused.begin(), idle.begin(), idle.end());
    AssignLayers(counts_, ministages_, &plan.pipelines[0]);
    return plan;
  }

  const Setting& setting_;
  const StagesChoice& choice_;
  SearchBudget* budget_;
  int64_t ministages_ = 1;
  std::vector<int64_t> counts_;
  std::vector<std::map<int64_t, std::optional<GroupAnswer>>> answers_;  // by stage, by layers
  absl::Status why_not_;
};

}  // namespace

absl::StatusOr<Plan> PlanStages(const Setting& setting, const StagesChoice& choice, SearchBudget* budget) {
  return StageBalancer(setting, choice, budget).Build();
}

}  // namespace motley::planner
