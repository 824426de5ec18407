// What a plan takes at least, in time and in memory, without simulating it: to pass over plans of an exhaustive search that
// cannot be the best. Sound by construction; all_plans_test compares with the simulator plan by plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "planner/costs/memory_model.h"
#include "planner/graph/group_flows.h"
#include "planner/graph/pass_seconds.h"
#include "planner/setting/setting.h"
#include "planner/view/plan_view.h"

namespace motley::planner {

// False: some rank's ledger exceeds its card even with no more in flight than the schedule's formula says.
inline bool MayFit(const Setting& setting, const PlanView& view) {
  std::vector<int64_t> host(setting.cluster.nodes.size(), 0);
  for (const RankView& rank : view.ranks) {
    const StageView& stage = view.stages[rank.stage];
    const MemoryByPurpose memory = MemoryOf(setting.costs, DutyOf(view, rank), stage.plan->units[rank.unit].microbatches);
    if (memory.total() > setting.UsableBytes(rank.device)) return false;
    host[setting.cluster.devices[rank.device].node] += memory.host;
  }
  for (size_t n = 0; n < host.size(); ++n) {
    if (host[n] > setting.cluster.nodes[n].host_memory_bytes) return false;
  }
  return true;
}

// Seconds. The largest of two sums for each actor: what its compute lane carries, after the first sample has come through the
// stages before and before its gradient has gone back through them; what its collective lane carries. (Zero bubble may compute
// the weights' gradients after that.)
class PlanFloor {
 public:
  PlanFloor(const Setting& setting, const PlanView& view) : setting_(setting), view_(view) {}

  double Seconds() const {
    double floor = ComputeSeconds(view_.schedule == ScheduleFamily::kZeroBubble);
    for (const StageView& stage : view_.stages) floor = std::max(floor, Collectives(stage));
    return floor;
  }

  // Of the compute lanes alone, whatever the sharding and offload. `any_schedule`: with zero bubble as well.
  double ComputeSeconds(bool any_schedule) const {
    double floor = 0;
    for (const PipelineView& pipeline : view_.pipelines) {
      Way way;  // of the first sample, to the stage and back
      for (int s = 0; s < pipeline.num_stages; ++s) {
        const StageView& stage = view_.stages[pipeline.first_stage + s];
        Way quickest{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
        for (const int a : stage.actors) {
          const Lane lane = Of(stage, view_.actors[a]);
          const double back = any_schedule ? std::max(0.0, way.back - lane.weights) : way.back;
          floor = std::max(floor, way.there + lane.busy + back);
          quickest = {std::min(quickest.there, lane.quickest.there), std::min(quickest.back, lane.quickest.back)};
        }
        const double hop = s + 1 < pipeline.num_stages ? HopSeconds(stage, view_.stages[pipeline.first_stage + s + 1]) : 0;
        way = {way.there + quickest.there + hop, way.back + quickest.back + hop};
      }
    }
    return floor;
  }

 private:
  struct Way {
    double there = 0, back = 0;  // forward; the input's gradient
  };
  struct Lane {
    double busy = 0;     // all microbatches
    double weights = 0;  // of them the weights' gradients
    Way quickest;        // of the quickest microbatch, through the smallest ministage
  };

  Lane Of(const StageView& stage, const ActorView& actor) const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    Lane worst{0, 0, {kNever, kNever}};
    if (actor.count() == 0) return worst;
    worst.quickest = {};
    const double sums = actor.ranks_per_unit > 1 ? 4 * TensorParallelSeconds(actor, actor.size(actor.count() - 1)) : 0;
    int64_t smallest_ministage = stage.layers;
    for (const LayerRange& range : stage.plan->ministages) {
      smallest_ministage = std::min(smallest_ministage, range.last - range.first + 1);
    }
    for (int r = 0; r < actor.ranks_per_unit; ++r) {
      const RankView& rank = view_.ranks[actor.first_rank + r];
      double busy = 0, weights = 0;
      Way quickest{kNever, kNever};
      for (int64_t k = 0; k < actor.count(); ++k) {
        const PassSeconds pass = SecondsOf(setting_.costs, rank, actor.size(k));
        const Part all{stage.embedding, 0, stage.layers, stage.head}, least{false, 0, smallest_ministage, false};
        const double backward = std::min(pass.Backward(all), pass.Backward(all, /*splits=*/true));
        busy += pass.Forward(all) + pass.Recompute(all) + backward + sums * static_cast<double>(stage.layers);
        weights += pass.BackwardWeight(all);
        const double back = std::min(pass.Backward(least), pass.BackwardInput(least));
        quickest = {std::min(quickest.there, pass.Forward(least)), std::min(quickest.back, back)};
      }
      worst.busy = std::max(worst.busy, busy);
      worst.weights = std::max(worst.weights, weights);
      worst.quickest = {std::max(worst.quickest.there, quickest.there), std::max(worst.quickest.back, quickest.back)};
    }
    return worst;
  }

  // Of the smallest microbatch.
  double TensorParallelSeconds(const ActorView& actor, int64_t microbatch) const {
    std::vector<int> devices;
    for (int r = 0; r < actor.ranks_per_unit; ++r) {
      devices.push_back(view_.ranks[actor.first_rank + r].device);
    }
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(microbatch)));
    return setting_.links.SecondsAlone(setting_.links.Ring(Collective::kAllReduce, devices, bytes));
  }

  // One sample between the best connected of both stages.
  double HopSeconds(const StageView& from, const StageView& to) const {
    double least = std::numeric_limits<double>::infinity();
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(1));
    for (int a = from.first_rank; a < from.first_rank + from.num_ranks; ++a) {
      for (int b = to.first_rank; b < to.first_rank + to.num_ranks; ++b) {
        least = std::min(
            least, setting_.links.SecondsAlone(setting_.links.PointToPoint(view_.ranks[a].device, view_.ranks[b].device, bytes)));
      }
    }
    return least;
  }

  // Bytes only: latencies depend on how many pieces there are.
  double Collectives(const StageView& stage) const {
    if (!stage.shared()) return 0;
    const int zero = stage.plan->zero_stage;
    const bool layered = view_.schedule == ScheduleFamily::kLayered;
    int64_t rounds = 0;
    for (const int a : stage.actors) rounds = std::max(rounds, view_.actors[a].count());
    const double reduced = !layered && zero >= 2 ? static_cast<double>(rounds) : 1;
    double gathered = 0;
    if (zero == 1 || zero == 2) gathered = stage.state.offload.parameters ? 0 : 1;
    if (zero == 3) gathered = layered ? 1 : 2 * static_cast<double>(rounds);
    return reduced * BytesSeconds(stage, zero == 0 ? Collective::kAllReduce : Collective::kReduceScatter) +
           gathered * BytesSeconds(stage, Collective::kAllGather);
  }

  double BytesSeconds(const StageView& stage, Collective collective) const {
    int64_t elements = stage.layers * setting_.costs.UnitElements(UnitKind::kLayer);
    if (stage.embedding || stage.tied_copy) elements += setting_.costs.UnitElements(UnitKind::kEmbedding);
    if (stage.head) elements += setting_.costs.UnitElements(UnitKind::kHead);
    const auto bytes = static_cast<double>(elements * setting_.costs.element_bytes());
    Flow flow = GroupFlow(setting_.links, view_, stage, collective, bytes);
    flow.latency_seconds = 0;
    return setting_.links.SecondsAlone(flow);
  }

  const Setting& setting_;
  const PlanView& view_;
};

}  // namespace motley::planner
