// The rules of the plan language (docs/use/plan-language.md numbers them). Each rule is one sentence that names rank and place.
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/some_names.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "planner/plan/ownership.h"
#include "planner/plan/placement.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule_check.h"
#include "planner/plan/unit_slices.h"
#include "planner/plan/virtual_stages.h"
#include "planner/util/work_count.h"

namespace motley::planner {
namespace {

// Rounded ratios of a large stage still add up.
constexpr double kTolerance = 1e-3;
// Far beyond any batch, and sums of a few stay far from overflow.
constexpr int64_t kLargestBatch = int64_t{1} << 40;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", parts...));
}

// Where a rule is broken: ranks are numbered through the whole plan.
struct Place {
  size_t pipeline = 0, stage = 0, rank = 0;
  std::string Stage() const { return absl::StrCat("pipeline ", pipeline, " stage ", stage); }
  std::string Rank(const RankPlan& r) const { return absl::StrCat("rank ", rank, " (", r.device.value(), ")"); }
};

absl::Status CheckHeader(const Plan& plan, const ModelShape& model) {
  if (plan.schema_version < 1 || plan.schema_version > kPlanSchemaVersion) {
    return Invalid("schema_version ", plan.schema_version, " is not known; this build knows 1 to ", kPlanSchemaVersion);
  }
  if (plan.global_batch < 1 || plan.global_batch > kLargestBatch) {
    return Invalid("global_batch must be in 1..", kLargestBatch, ", got ", plan.global_batch);
  }
  if (plan.seq_len < 1 || plan.seq_len > model.max_positions) {
    return Invalid("seq_len must be in 1..", model.max_positions, " (the model's positions), got ", plan.seq_len);
  }
  if (plan.pipelines_zero_stage < 0 || plan.pipelines_zero_stage > 2) {
    return Invalid("pipelines_zero_stage must be 0, 1 or 2, got ", plan.pipelines_zero_stage);
  }
  if (plan.pipelines.empty()) return Invalid("pipelines: empty, at least one must compute");
  if (plan.optimizer_steps == OptimizerSteps::kInTurn && plan.pipelines.size() > 1) {
    return Invalid("optimizer_steps is in_turn, but ", plan.pipelines.size(),
                   " pipelines sum a unit when all of them have it; use at_end, or one pipeline");
  }
  return absl::OkStatus();
}

// In the order of the family's map each range begins where the one before ended.
absl::Status CheckMinistages(const PipelinePlan& pipeline, size_t p, VirtualStageMap map, const ModelShape& model) {
  const size_t rounds = pipeline.stages[0].ministages.size();
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    const size_t count = pipeline.stages[s].ministages.size();
    if (count == 0) return Invalid("pipeline ", p, " stage ", s, ": ministages are empty, a stage holds at least one layer");
    if (count != rounds) {
      return Invalid("pipeline ", p, " stage ", s, ": ", count, " ministages, stage 0 has ", rounds, "; ministages go ",
                     std::string(MapName(map)), ", so every stage of a pipeline has as many");
    }
  }
  int64_t next = 0;
  for (const auto& [s, i] : MappedStages(map, pipeline.stages.size(), rounds)) {
    const LayerRange& range = pipeline.stages[s].ministages[i];
    if (range.first != next || range.last < range.first || range.last >= model.num_layers) {
      return Invalid("pipeline ", p, " stage ", s, ": ministages[", i, "] is layers ", range.first, "-", range.last,
                     " where layer ", next, " of 0-", model.num_layers - 1, " comes next");
    }
    next = range.last + 1;
  }
  if (next != model.num_layers) {
    return Invalid("pipeline ", p, ": ministages end before layer ", next, ", the model has ", model.num_layers,
                   " layers; every pipeline computes all of them");
  }
  return absl::OkStatus();
}

absl::Status CheckRank(const RankPlan& rank, const UnitPlan& unit, const Place& place) {
  if (rank.device.empty()) return Invalid("rank ", place.rank, " in ", place.Stage(), ": device is missing");
  const std::string name = place.Rank(rank);
  if (!(rank.shard_ratio >= 0 && rank.shard_ratio <= 1)) {
    return Invalid(name, ": shard_ratio must be in 0..1, got ", rank.shard_ratio);
  }
  if (!(rank.tp_share > 0 && rank.tp_share <= 1 + kTolerance)) {
    return Invalid(name, ": tp_share must be above 0 and at most 1, got ", rank.tp_share);
  }
  if (unit.ranks.size() == 1 && std::abs(rank.tp_share - 1) > kTolerance) {
    return Invalid(name, ": tp_share is ", rank.tp_share, " but the unit has no other rank; the only one computes all, 1");
  }
  return absl::OkStatus();
}

absl::Status CheckUnit(const Plan& plan, const UnitPlan& unit, size_t u, Place* place) {
  if (unit.ranks.empty()) return Invalid(place->Stage(), ": units[", u, "] has no ranks");
  const Place first = *place;
  double tp = 0;
  for (const RankPlan& rank : unit.ranks) {
    MOTLEY_RETURN_IF_ERROR(CheckRank(rank, unit, *place));
    tp += rank.tp_share;
    ++place->rank;
  }
  if (std::abs(tp - 1) > kTolerance) {
    return Invalid("the unit of ", first.Rank(unit.ranks[0]), ": tp_share adds up to ", tp, " over its ", unit.ranks.size(),
                   " ranks, it must be 1");
  }
  for (const int64_t m : unit.microbatches) {
    if (m < 1) return Invalid(first.Rank(unit.ranks[0]), ": microbatches must be at least 1, got ", m);
    if (m > plan.global_batch) {
      return Invalid(first.Rank(unit.ranks[0]), ": a microbatch of ", m, " is more than the global batch of ", plan.global_batch);
    }
  }
  return absl::OkStatus();
}

// Samples of a stage, at most one microbatch beyond `limit`: a wrong list cannot overflow.
int64_t BatchOf(const StagePlan& stage, int64_t limit) {
  int64_t batch = 0;
  for (const UnitPlan& unit : stage.units) {
    for (const int64_t m : unit.microbatches) {
      batch += m;
      if (batch > limit) return batch;
    }
  }
  return batch;
}

// With nobody to share with, a tensor-parallel rank stores the state of what it computes. Of owned ranges the slices say that.
absl::Status CheckLoneUnit(const StagePlan& stage, bool has_ownership, const Place& place) {
  if (has_ownership || stage.units.size() != 1 || stage.zero_stage == 0) return absl::OkStatus();
  if (stage.units[0].ranks.size() < 2) return absl::OkStatus();
  for (const RankPlan& rank : stage.units[0].ranks) {
    if (std::abs(rank.shard_ratio - rank.tp_share) > kTolerance) {
      return Invalid(place.Stage(), ": ", rank.device.value(), " has shard_ratio ", rank.shard_ratio, " and tp_share ",
                     rank.tp_share, "; in a stage of one unit they are the same, as nothing is gathered there");
    }
  }
  return absl::OkStatus();
}

// Gradients wait in host memory for a step that brings the unit's optimizer from there, and only where nothing else keeps them on
// the device: they are summed once, in turn.
absl::Status CheckOffload(const Plan& plan, const StagePlan& stage, const RankPlan& rank, const Place& place) {
  if (!rank.offload.gradients) return absl::OkStatus();
  const std::string offloads = absl::StrCat(place.Rank(rank), ": it offloads gradients, ");
  if (!rank.offload.optimizer) return Invalid(offloads, "but not the optimizer, which they wait for; offload both");
  if (plan.pipelines.size() > 1) {
    return Invalid(offloads, "but ", plan.pipelines.size(), " pipelines sum them, on the device; offload them with one pipeline");
  }
  if (!TraitsOf(plan.schedule).by_ministage) {
    return Invalid(offloads, "but schedule ", std::string(ScheduleName(plan.schedule)), " sums a unit for every microbatch; use ",
                   NamesOf([](const ScheduleTraits& traits) { return traits.by_ministage; }, "or"));
  }
  if (plan.optimizer_steps == OptimizerSteps::kInTurn) {
    return Invalid(offloads, "but optimizer_steps is in_turn, so that none waits; leave out one of both");
  }
  if (stage.units.size() > 1 ? stage.zero_stage >= 2 : stage.units[0].ranks.size() == 1) return absl::OkStatus();
  return Invalid(offloads, "but its stage (zero_stage ", stage.zero_stage, ", ", stage.units.size(),
                 stage.units.size() == 1 ? " unit of several ranks" : " units",
                 ") keeps them whole on the device; use zero_stage 2 or 3 over several units, or one rank");
}

absl::Status CheckStage(const Plan& plan, const StagePlan& stage, Place* place) {
  if (stage.units.empty()) return Invalid(place->Stage(), ": units: empty, at least one device must take part");
  if (stage.zero_stage < 0 || stage.zero_stage > 3) {
    return Invalid(place->Stage(), ": zero_stage must be 0, 1, 2 or 3, got ", stage.zero_stage);
  }
  if (stage.in_flight < 0)
    return Invalid(place->Stage(), ": in_flight must be at least 1, or 0 for the schedule's own, got ", stage.in_flight);
  if (stage.in_flight > 0 && !TraitsOf(plan.schedule).takes_in_flight) {
    return Invalid(place->Stage(), ": in_flight given, but the schedule is ", std::string(ScheduleName(plan.schedule)), "; only ",
                   NamesOf([](const ScheduleTraits& traits) { return traits.takes_in_flight; }, "and"),
                   " choose how many microbatches a stage keeps");
  }
  if (stage.prefetch < 1 || stage.prefetch > kMostPrefetch) {
    return Invalid(place->Stage(), ": prefetch must be in 1..", kMostPrefetch, ", got ", stage.prefetch);
  }
  double shares = 0;
  for (size_t u = 0; u < stage.units.size(); ++u) {
    Place of_rank = *place;
    MOTLEY_RETURN_IF_ERROR(CheckUnit(plan, stage.units[u], u, place));
    for (const RankPlan& rank : stage.units[u].ranks) {
      shares += rank.shard_ratio;
      MOTLEY_RETURN_IF_ERROR(CheckOffload(plan, stage, rank, of_rank));
      ++of_rank.rank;
    }
  }
  if (stage.zero_stage > 0 && !plan.ownership && std::abs(shares - 1) > kTolerance) {
    return Invalid(place->Stage(), ": shard_ratio adds up to ", shares, " over its ranks, it must be 1");
  }
  return CheckLoneUnit(stage, plan.ownership.has_value(), *place);
}

// What a schedule family demands of a pipeline of several stages.
absl::Status CheckSchedule(const Plan& plan, const PipelinePlan& pipeline, size_t p) {
  const size_t stages = pipeline.stages.size();
  if (stages == 1) return absl::OkStatus();
  const size_t rounds = pipeline.stages[0].ministages.size();
  const ScheduleTraits& traits = TraitsOf(plan.schedule);
  if (traits.ministages > 0 && rounds != traits.ministages) {
    return Invalid("pipeline ", p, ": ", rounds, " ministages a stage; schedule ", std::string(traits.name), " runs exactly ",
                   traits.ministages, ", use ", NamesOf([](const ScheduleTraits& any) { return any.ministages == 0; }, "or"),
                   " for several");
  }
  if (plan.schedule != ScheduleFamily::kInterleaved || rounds == 1) return absl::OkStatus();
  size_t count = 0;  // of the first unit that computes
  for (size_t s = 0; s < stages; ++s) {
    for (const UnitPlan& unit : pipeline.stages[s].units) {
      const size_t own = unit.microbatches.size();
      if (count == 0) count = own;
      if (own == 0 || (own == count && own % stages == 0)) continue;
      return Invalid("pipeline ", p, " stage ", s, ": the unit of ", unit.ranks[0].device.value(), " has ", own,
                     " microbatches; schedule interleaved runs as many on every unit, a multiple of its ", stages, " stages");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBatches(const Plan& plan) {
  int64_t total = 0;
  std::vector<std::string> of_pipelines;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<StagePlan>& stages = plan.pipelines[p].stages;
    const int64_t batch = BatchOf(stages[0], plan.global_batch);
    for (size_t s = 1; s < stages.size(); ++s) {
      const int64_t own = BatchOf(stages[s], plan.global_batch);
      if (own == batch) continue;
      return Invalid("pipeline ", p, " stage ", s, " computes ", own, " samples, stage 0 ", batch,
                     "; every stage of a pipeline computes the pipeline's batch");
    }
    if (batch == 0) return Invalid("pipeline ", p, " has no microbatches; list its devices as unused");
    total += batch;
    of_pipelines.push_back(absl::StrCat("pipeline ", p, ": ", batch));
    if (total > plan.global_batch) break;
  }
  if (total == plan.global_batch) return absl::OkStatus();
  return Invalid("the ranks' microbatches add up to ", total > plan.global_batch ? "at least " : "", total,
                 ", the global batch is ", plan.global_batch,
                 plan.pipelines.size() == 1 ? "" : absl::StrCat(" (", SomeNames(of_pipelines), ")"));
}

absl::Status CheckDistinctDevices(const Plan& plan) {
  std::map<DeviceId, std::string> seen;  // and where
  Place place;
  for (; place.pipeline < plan.pipelines.size(); ++place.pipeline) {
    const std::vector<StagePlan>& stages = plan.pipelines[place.pipeline].stages;
    for (place.stage = 0; place.stage < stages.size(); ++place.stage) {
      for (const UnitPlan& unit : stages[place.stage].units) {
        for (const RankPlan& rank : unit.ranks) {
          const auto [at, added] = seen.emplace(rank.device, place.Stage());
          if (!added) {
            return Invalid(place.Rank(rank), ": the device is there twice, in ", at->second, " and in ", place.Stage(),
                           "; it computes in one place");
          }
          ++place.rank;
        }
      }
    }
  }
  for (const UnusedDevice& unused : plan.unused) {
    if (unused.device.empty()) return Invalid("unused: device is missing");
    if (!seen.emplace(unused.device, "unused").second) return Invalid("unused: ", unused.device.value(), " is there twice");
  }
  return absl::OkStatus();
}

// A rank owns of what its stage computes with.
absl::Status CheckOwners(const Plan& plan, const ModelShape& model) {
  const std::vector<int64_t> elements = UnitElements(ParameterLayout(model));
  std::vector<std::vector<bool>> holds;  // by rank and block
  std::vector<std::string> names;
  Place place;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      std::vector<bool> blocks(elements.size(), false);
      for (const size_t block : UnitsOfStage(pipeline, s, elements.size())) blocks[block] = true;
      for (const UnitPlan& unit : pipeline.stages[s].units) {
        for (const RankPlan& rank : unit.ranks) {
          holds.push_back(blocks);
          names.push_back(place.Rank(rank));
          ++place.rank;
        }
      }
    }
  }
  MOTLEY_RETURN_IF_ERROR(Validate(*plan.ownership, elements, static_cast<int32_t>(holds.size())));
  for (const Ownership::Alike& alike : plan.ownership->AlikeBlocks()) {
    for (const BlockSpan& span : alike.blocks) {
      for (int32_t block = span.first; block <= span.last; ++block) {
        for (const OwnedRange& range : *alike.ranges) {
          if (holds[range.rank][static_cast<size_t>(block)]) continue;
          return Invalid("ownership: ", names[range.rank], " owns elements ", range.begin, " to ", range.end, " of block ", block,
                         ", which its stage does not hold");
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOwnership(const Plan& plan, const ModelShape& model) {
  if (!plan.ownership) return absl::OkStatus();  // by the shard ratios
  size_t s = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    for (const StagePlan& stage : pipeline.stages) {
      if (stage.zero_stage == 0) {
        return Invalid("ownership: given, but stage ", s, " has zero_stage 0, where every rank owns everything; say 1");
      }
      ++s;
    }
  }
  return CheckOwners(plan, model);
}

}  // namespace

absl::Status Validate(const Plan& plan, const ModelShape& model) {
  ++WorkOfThread().validations;
  MOTLEY_RETURN_IF_ERROR(CheckHeader(plan, model));
  Place place;
  for (; place.pipeline < plan.pipelines.size(); ++place.pipeline) {
    const PipelinePlan& pipeline = plan.pipelines[place.pipeline];
    if (pipeline.stages.empty()) return Invalid("pipeline ", place.pipeline, ": stages: empty, at least one must compute");
    MOTLEY_RETURN_IF_ERROR(CheckMinistages(pipeline, place.pipeline, TraitsOf(plan.schedule).map, model));
    for (place.stage = 0; place.stage < pipeline.stages.size(); ++place.stage) {
      MOTLEY_RETURN_IF_ERROR(CheckStage(plan, pipeline.stages[place.stage], &place));
    }
    MOTLEY_RETURN_IF_ERROR(CheckSchedule(plan, pipeline, place.pipeline));
  }
  MOTLEY_RETURN_IF_ERROR(CheckDistinctDevices(plan));
  MOTLEY_RETURN_IF_ERROR(CheckBatches(plan));
  MOTLEY_RETURN_IF_ERROR(CheckOwnership(plan, model));
  MOTLEY_RETURN_IF_ERROR(CheckTensorParallel(plan, model));
  if (plan.training) MOTLEY_RETURN_IF_ERROR(ValidateSchedule(plan, *plan.training, true));
  if (plan.validation) MOTLEY_RETURN_IF_ERROR(ValidateSchedule(plan, *plan.validation, false));
  return absl::OkStatus();
}

}  // namespace motley::planner
