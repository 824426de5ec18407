#include "planner/graph/pass_seconds.h"

#include <algorithm>
#include <utility>

#include "common/model/layer_table.h"

namespace motley::planner {
PassSeconds SecondsOf(const Costs& costs, const RankView& rank, int64_t microbatch, std::optional<OpSet> again) {
  using SecondsOfUnit = double (Costs::*)(int, UnitKind, double, double) const;
  constexpr std::pair<TaskKind, SecondsOfUnit> kPasses[] = {{TaskKind::kForward, &Costs::ForwardSeconds},
                                                            {TaskKind::kBackward, &Costs::BackwardSeconds},
                                                            {TaskKind::kBackwardInput, &Costs::BackwardInputSeconds},
                                                            {TaskKind::kBackwardWeight, &Costs::BackwardWeightSeconds}};
  const auto samples = static_cast<double>(microbatch);
  const double share = rank.plan->tp_share;
  PassSeconds seconds;
  for (const auto& [pass, of] : kPasses) {
    for (const UnitKind unit : {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kHead}) {
      seconds.of_unit[PassSeconds::Index(pass, unit)] = (costs.*of)(rank.kind, unit, samples, share);
    }
  }
  seconds.of_unit[PassSeconds::Index(TaskKind::kRecompute, UnitKind::kLayer)] =
      costs.RecomputeSeconds(rank.kind, UnitKind::kLayer, again.value_or(rank.recompute), samples, share);
  return seconds;
}

double SegmentPart(const Costs& costs, int kind, UnitSegment segment) {
  if (segment == UnitSegment::kLoss) return 0;
  if (segment != UnitSegment::kAttention && segment != UnitSegment::kMlp) return 1;
  double attention = 0;
  for (const Costs::OperatorCost& op : costs.Operators(kind)) attention += InAttention(op.op) ? op.forward_part : 0;
  return segment == UnitSegment::kAttention ? attention : 1 - attention;
}

double SumsInside(TaskKind pass, const Part& part) {
  const bool forward = pass == TaskKind::kForward;
  if (!forward && pass != TaskKind::kBackward && pass != TaskKind::kBackwardInput) return 0;
  return 2 * static_cast<double>(part.layers) + ((forward ? part.embedding : part.head) ? 1 : 0);
}

const PassSeconds& SecondsTable::Of(size_t actor, int64_t microbatch, std::optional<OpSet> again) {
  std::vector<Entry>& entries = entries_[actor];
  for (const Entry& entry : entries) {
    if (entry.microbatch == microbatch && entry.again == again) return entry.seconds;
  }
  const ActorView& a = actors_[actor];
  PassSeconds& slowest = entries.emplace_back(microbatch, again).seconds;
  for (int r = a.first_rank; r < a.first_rank + a.ranks_per_unit; ++r) {
    const PassSeconds seconds = SecondsOf(costs_, ranks_[r], microbatch, again);
    for (size_t i = 0; i < seconds.of_unit.size(); ++i) slowest.of_unit[i] = std::max(slowest.of_unit[i], seconds.of_unit[i]);
  }
  return slowest;
}

}  // namespace motley::planner
