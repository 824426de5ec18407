#include "planner/answers/given_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"
#include "common/device/device_table.h"
#include "planner/answers/plan_answer.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"
#include "planner/pricing/price.h"

namespace motley::planner {
namespace {

constexpr size_t kMostWarnings = 8;  // a plan for another cluster may differ in every device

// "A100" and "A100-40GB" are one card.
std::string CardName(const std::string& label) {
  const absl::StatusOr<GpuSpec> gpu = FindGpu(label);
  return gpu.ok() ? std::string(gpu->name) : label;
}

// Devices that the cluster has under the plan's names, but which are other cards than the plan says.
std::vector<std::string> FindOtherCards(const Setting& setting, Plan& plan) {
  std::map<DeviceId, int> kind_of;
  for (const ClusterDevice& device : setting.cluster.devices) kind_of[device.id] = device.kind;
  const std::string& made_for = plan.cluster;
  const bool elsewhere = !made_for.empty() && made_for != setting.cluster.name;
  std::vector<std::string> warnings;
  size_t more = 0;
  ForEachRank(plan, [&](const RankPlan& rank) {
    const auto found = kind_of.find(rank.device);
    if (found == kind_of.end() || rank.device_model.empty()) return;
    const std::string& here = setting.cluster.kinds[found->second].name;
    if (CardName(rank.device_model) == CardName(here)) return;
    if (warnings.size() == kMostWarnings) {
      ++more;
      return;
    }
    warnings.push_back(absl::StrCat("plan says ", rank.device_model, " for ", rank.device.value(),
                                    elsewhere ? absl::StrCat(" and was made for ", made_for) : "", "; here it is ", here, " of ",
                                    setting.cluster.name));
  });
  if (more > 0) warnings.push_back(absl::StrCat("and ", more, " other cards more"));
  if (warnings.empty() && elsewhere) {
    warnings.push_back(absl::StrCat("the plan was made for ", made_for, "; it is priced on ", setting.cluster.name));
  }
  return warnings;
}

absl::Status CheckDevices(const Setting& setting, Plan& plan) {
  std::map<DeviceId, int> index;
  std::vector<std::string> names;
  for (const ClusterDevice& device : setting.cluster.devices) {
    index[device.id] = device.kind;
    names.push_back(device.id.value());
  }
  size_t rank = 0;
  absl::Status status;
  ForEachRank(plan, [&](RankPlan& r) {
    const size_t number = rank++;
    const auto found = index.find(r.device);
    if (found != index.end()) {
      r.device_model = setting.cluster.kinds[found->second].name;
      return;
    }
    if (!status.ok()) return;
    std::string remedy;
    for (const UnusedDevice& excluded : setting.excluded) {
      if (excluded.device == r.device) remedy = "; --exclude names it";
    }
    if (const std::string nearest = NearestWord(r.device.value(), names); remedy.empty() && !nearest.empty()) {
      remedy = absl::StrCat("; did you mean ", nearest, "?");
    }
    status = absl::InvalidArgumentError(absl::StrCat(
        "plan: rank ", number, " (", r.device.value(), "): ", ClusterInWords(setting.cluster), " has no such device",
        plan.cluster.empty() || plan.cluster == setting.cluster.name ? ""
                                                                     : absl::StrCat(", the plan was made for ", plan.cluster),
        remedy));
  });
  return status;
}

// A plan's unused devices may be of another day.
void DropUnknownUnused(const Setting& setting, Plan* plan) {
  std::erase_if(plan->unused, [&](const UnusedDevice& unused) {
    return std::none_of(setting.cluster.devices.begin(), setting.cluster.devices.end(),
                        [&](const ClusterDevice& device) { return device.id == unused.device; });
  });
}

class Mender {
 public:
  explicit Mender(std::vector<std::string>* broken) : broken_(broken) {}

  // Makes the sums add up where that is all that is wrong.
  void Mend(Plan* plan) {
    MendBatch(plan);
    for (size_t p = 0; p < plan->pipelines.size(); ++p) {
      for (size_t s = 0; s < plan->pipelines[p].stages.size(); ++s)
        MendShares(absl::StrCat("pipeline ", p, " stage ", s), p, s, plan);
    }
  }

 private:
  // A share below zero is no slip of sums: it stays as written, for Validate to name.
  static bool IsShare(double share) { return share >= 0 && std::isfinite(share); }
  static bool Off(double sum) { return sum > 0 && std::isfinite(sum) && std::abs(sum - 1) > 1e-3; }

  void MendBatch(Plan* plan) {
    int64_t total = 0;
    for (const PipelinePlan& pipeline : plan->pipelines) {
      if (pipeline.stages.empty()) return;
      for (const UnitPlan& unit : pipeline.stages[0].units) {
        for (const int64_t m : unit.microbatches) {
          if (m < 1 || m > (int64_t{1} << 30) || total > (int64_t{1} << 30)) return;  // nothing that a price could mean
          total += m;
        }
      }
    }
    if (total == 0 || total == plan->global_batch) return;
    Say("the ranks' microbatches add up to ", total, ", the global batch is ", plan->global_batch, "; priced with ", total);
    plan->global_batch = total;
  }

  void MendShares(const std::string& where, size_t p, size_t s, Plan* plan) {
    StagePlan& stage = plan->pipelines[p].stages[s];
    double shards = 0;
    bool shares = true;
    for (UnitPlan& unit : stage.units) {
      double tp = 0;
      bool tp_shares = true;
      for (const RankPlan& rank : unit.ranks) {
        shards += rank.shard_ratio;
        tp += rank.tp_share;
        shares &= IsShare(rank.shard_ratio);
        tp_shares &= IsShare(rank.tp_share);
      }
      if (!tp_shares || !Off(tp)) continue;
      Say(where, ": the tensor-parallel shares of ", unit.ranks[0].device.value(), "'s unit add up to ", tp,
          ", priced as parts of 1");
      for (RankPlan& rank : unit.ranks) rank.tp_share /= tp;
    }
    if (stage.zero_stage == 0 || !shares || !Off(shards)) return;
    Say(where, ": the shard ratios add up to ", shards, ", priced as parts of 1");
    for (UnitPlan& unit : stage.units) {
      for (RankPlan& rank : unit.ranks) rank.shard_ratio /= shards;
    }
    plan->ownership.reset();
  }

  template <typename... Parts>
  void Say(const Parts&... parts) {
    broken_->push_back(absl::StrCat(parts...));
  }

  std::vector<std::string>* const broken_;
};

}  // namespace

void FillIn(const PlanDefaults& defaults, Plan* plan) {
  if (plan->strategy.empty()) plan->strategy = "manual";
  if (plan->global_batch == 0) plan->global_batch = defaults.global_batch;
  if (plan->seq_len == 0) plan->seq_len = defaults.seq_len;
  if (plan->pipelines.size() != 1 || plan->pipelines[0].stages.size() != 1) return;
  StagePlan& stage = plan->pipelines[0].stages[0];
  if (stage.ministages.empty()) stage.ministages = {{0, defaults.num_layers - 1}};
}

absl::StatusOr<GivenPlan> PriceGivenPlan(const Setting& setting, Plan plan) {
  const Workload& workload = setting.workload;
  FillIn({workload.model.num_layers, workload.global_batch, workload.seq_len}, &plan);
  plan.predicted = {};
  const int version = plan.schema_version;
  plan.schema_version = kPlanSchemaVersion;
  GivenPlan given;
  given.warnings = FindOtherCards(setting, plan);
  MOTLEY_RETURN_IF_ERROR(CheckDevices(setting, plan));
  DropUnknownUnused(setting, &plan);
  if (const absl::Status valid = Validate(plan, setting.workload.model); !valid.ok()) {
    Mender(&given.broken).Mend(&plan);
    if (!given.broken.empty()) plan.training.reset(), plan.validation.reset();  // they were of the sums as written
    MOTLEY_RETURN_IF_ERROR(Validate(plan, setting.workload.model));
  }
  plan.cluster = setting.cluster.name;
  plan.cluster_file = setting.cluster.file;
  plan.model = setting.workload.model_name;
  const bool had_replicas = HasReplicas(plan);
  if (plan.global_batch == setting.workload.global_batch) {
    MOTLEY_ASSIGN_OR_RETURN(given.evaluation, Price(setting, std::move(plan)));
    given.bound = FindLowerBound(setting);
    given.evaluation.plan.predicted.lower_bound_seconds = given.bound.seconds;
  } else {
    Setting mended = setting;
    mended.workload.global_batch = plan.global_batch;
    MOTLEY_ASSIGN_OR_RETURN(given.evaluation, Price(mended, std::move(plan)));
  }
  CompleteUnused(setting, &given.evaluation.plan);
  Plan& priced = given.evaluation.plan;
  if (version < kFirstWithSchedules && priced.training) {
    priced.predicted.notes.push_back(absl::StrCat("the plan is of schema ", version,
                                                  ", which had no schedules: its schedule was made anew, from today's costs"));
  }
  if (version < kFirstWithOwnership && priced.ownership) {
    priced.predicted.notes.push_back(
        absl::StrCat("the plan is of schema ", version, ": who owns which elements was made anew, from its shares"));
  }
  if (had_replicas && !HasReplicas(priced)) {
    priced.predicted.notes.push_back(
        "the plan's ZeRO 0 is ZeRO 1 in even shares here: one rank steps an element and hands its value on");
  }
  return given;
}

}  // namespace motley::planner
