#include "planner/plan/ownership.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/plan/placement.h"
#include "planner/plan/virtual_stages.h"

namespace motley::planner {
namespace {

double ShareOf(const StagePlan& stage, const RankPlan& rank) {
  return stage.zero_stage == 0 ? rank.tp_share / static_cast<double>(stage.units.size()) : rank.shard_ratio;
}

// Of the stage's ranks, in order.
std::vector<double> SharesOf(const StagePlan& stage) {
  std::vector<double> shares;
  for (const UnitPlan& unit : stage.units) {
    for (const RankPlan& rank : unit.ranks) shares.push_back(ShareOf(stage, rank));
  }
  return shares;
}

// What the ranks of one pipeline hold of each block. `first_rank`: the pipeline's.
std::vector<OwnedRanges> HeldBy(const PipelinePlan& pipeline, int32_t first_rank, const std::vector<int64_t>& elements) {
  std::vector<OwnedRanges> held(elements.size());
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    const std::vector<double> shares = SharesOf(pipeline.stages[s]);
    for (const size_t block : UnitsOfStage(pipeline, s, elements.size())) {
      const std::vector<int64_t> bounds = CutByShares(elements[block], shares);
      for (size_t r = 0; r < shares.size(); ++r) {
        held[block].push_back({first_rank + static_cast<int32_t>(r), bounds[r], bounds[r + 1]});
      }
    }
    first_rank += static_cast<int32_t>(shares.size());
  }
  return held;
}

// One block: where all pipelines' ranks are the same the piece is cut in as many parts as there are pipelines; pipeline p owns
// part p.
OwnedRanges Divided(const std::vector<OwnedRanges>& held) {
  std::vector<int64_t> borders;
  for (const OwnedRanges& pipeline : held) {
    for (const OwnedRange& range : pipeline) borders.insert(borders.end(), {range.begin, range.end});
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  const auto pipelines = static_cast<int64_t>(held.size());
  OwnedRanges owned;
  std::vector<size_t> at(held.size(), 0);  // the range that holds the piece, by pipeline
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const int64_t begin = borders[i], length = borders[i + 1] - begin;
    for (int64_t p = 0; p < pipelines; ++p) {
      const OwnedRanges& ranges = held[static_cast<size_t>(p)];
      size_t& range = at[static_cast<size_t>(p)];
      while (ranges[range].end <= begin) ++range;
      owned.push_back({ranges[range].rank, begin + length * p / pipelines, begin + length * (p + 1) / pipelines});
    }
  }
  return owned;
}

int32_t NumRanks(const StagePlan& stage) {
  size_t ranks = 0;
  for (const UnitPlan& unit : stage.units) ranks += unit.ranks.size();
  return static_cast<int32_t>(ranks);
}
int32_t NumRanks(const PipelinePlan& pipeline) {
  int32_t ranks = 0;
  for (const StagePlan& stage : pipeline.stages) ranks += NumRanks(stage);
  return ranks;
}

Ownership ByShares(const Plan& plan, const std::vector<int64_t>& elements) {
  std::vector<std::vector<OwnedRanges>> held;  // by pipeline
  int32_t first_rank = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    held.push_back(HeldBy(pipeline, first_rank, elements));
    first_rank += NumRanks(pipeline);
  }
  Ownership ownership;
  for (size_t block = 0; block < elements.size(); ++block) {
    std::vector<OwnedRanges> of_block;
    for (std::vector<OwnedRanges>& pipeline : held) of_block.push_back(std::move(pipeline[block]));
    ownership.Add(of_block.size() == 1 ? of_block[0] : Divided(of_block));
  }
  return ownership;
}

}  // namespace

std::vector<size_t> UnitsOfStage(const PipelinePlan& pipeline, size_t s, size_t num_blocks) {
  std::vector<size_t> blocks;
  if (s == EmbeddingStage(pipeline)) blocks.push_back(0);
  for (const LayerRange& range : pipeline.stages[s].ministages) {
    for (int64_t layer = range.first; layer <= range.last; ++layer) blocks.push_back(static_cast<size_t>(layer + 1));
  }
  if (s == HeadStage(pipeline)) blocks.push_back(num_blocks - 1);
  return blocks;
}

Ownership OwnershipOf(const Plan& plan, const std::vector<int64_t>& elements) {
  return plan.ownership ? *plan.ownership : ByShares(plan, elements);
}

bool HasReplicas(const Plan& plan) {
  return (plan.pipelines.size() > 1 && plan.pipelines_zero_stage == 0) ||
         std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [](const PipelinePlan& pipeline) {
           return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                              [](const StagePlan& stage) { return stage.zero_stage == 0 && stage.units.size() > 1; });
         });
}

void ShareReplicas(Plan* plan) {
  if (plan->pipelines.size() > 1) plan->pipelines_zero_stage = std::max(plan->pipelines_zero_stage, 1);
  for (PipelinePlan& pipeline : plan->pipelines) {
    for (StagePlan& stage : pipeline.stages) {
      for (UnitPlan& unit : stage.units) {
        for (RankPlan& rank : unit.ranks) rank.shard_ratio = ShareOf(stage, rank);
      }
      stage.zero_stage = std::max(stage.zero_stage, 1);
    }
  }
}

void GiveOwnership(const std::vector<int64_t>& elements, Plan* plan) {
  ShareReplicas(plan);
  if (!plan->ownership) plan->ownership = ByShares(*plan, elements);
  SetShardRatios(plan);
}

void SetShardRatios(Plan* plan) {
  size_t world = 0;
  for (const PipelinePlan& pipeline : plan->pipelines) world += static_cast<size_t>(NumRanks(pipeline));
  const std::vector<double> owned = plan->ownership->NumOwnedByRank(world);
  auto next = owned.begin();
  for (PipelinePlan& pipeline : plan->pipelines) {
    for (StagePlan& stage : pipeline.stages) {
      const auto end = next + NumRanks(stage);
      const double whole = std::accumulate(next, end, 0.0);
      for (UnitPlan& unit : stage.units) {
        for (RankPlan& rank : unit.ranks) rank.shard_ratio = *next++ / std::max(1.0, whole);
      }
    }
  }
}

}  // namespace motley::planner
