#include "planner/plan/ownership.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "common/model/model_slice.h"
#include "common/model/parameters.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/placement.h"
#include "planner/plan/shared_slices.h"
#include "planner/plan/unit_slices.h"
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

// The array in the order of the stage's ranks, the first of which is `first_rank`.
OwnedRanges CutWhole(int64_t elements, const std::vector<double>& shares, int32_t first_rank) {
  const std::vector<int64_t> cuts = CutByShares(elements, shares);
  OwnedRanges ranges;
  for (size_t r = 0; r < shares.size(); ++r) ranges.push_back({first_rank + static_cast<int32_t>(r), cuts[r], cuts[r + 1]});
  return ranges;
}

// Of some of the stage's ranks, adding up to 1; even ones where there are none. `ranks` count from the stage's first.
std::vector<double> SharesAmong(const std::vector<double>& shares, const std::vector<int32_t>& ranks) {
  std::vector<double> own;
  double sum = 0;
  for (const int32_t rank : ranks) {
    own.push_back(shares[static_cast<size_t>(rank)]);
    sum += own.back();
  }
  for (double& share : own) share = sum > 0 ? share / sum : 1.0 / static_cast<double>(own.size());
  return own;
}

// The same of a stage whose ranks have `slices`: what is divided among those that have it, slice by slice.
OwnedRanges CutSlices(const UnitSpec& unit, const std::vector<ModelSlice>& slices, const std::vector<double>& shares,
                      int32_t first_rank) {
  std::vector<int32_t> all(slices.size());
  std::iota(all.begin(), all.end(), 0);
  OwnedRanges ranges;
  for (const auto& [slice, ranks] : SharedSlicesOf(slices, all)) {
    const std::vector<SliceRun> runs = DividedRunsOf(unit, slice);
    int64_t divided = 0;
    for (const SliceRun& run : runs) divided += run.elements;
    const std::vector<int64_t> cuts = CutByShares(divided, SharesAmong(shares, ranks));
    for (size_t i = 0; i < ranks.size(); ++i) {
      for (const SliceRun& run : runs) {
        const int64_t begin = std::max(run.in_slice, cuts[i]), end = std::min(run.in_slice + run.elements, cuts[i + 1]);
        const int64_t in_unit = run.in_unit - run.in_slice;
        if (begin < end) ranges.push_back({first_rank + ranks[i], in_unit + begin, in_unit + end});
      }
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const OwnedRange& a, const OwnedRange& b) { return a.begin < b.begin; });
  for (OwnedRange& range : CutWhole(unit.num_elements - unit.divided_elements, shares, first_rank)) {
    ranges.push_back({range.rank, unit.divided_elements + range.begin, unit.divided_elements + range.end});
  }
  return ranges;
}

// What is known of the model.
struct Blocks {
  std::vector<int64_t> elements;
  const ModelShape* model = nullptr;  // nullptr: no more than that
  std::vector<UnitSpec> layout;
};

// What the ranks of one pipeline hold of each block. `first_rank`: the pipeline's.
std::vector<OwnedRanges> HeldBy(const PipelinePlan& pipeline, int32_t first_rank, const Blocks& blocks) {
  std::vector<OwnedRanges> held(blocks.elements.size());
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    const StagePlan& stage = pipeline.stages[s];
    const std::vector<double> shares = SharesOf(stage);
    absl::StatusOr<std::vector<ModelSlice>> slices = std::vector<ModelSlice>();
    if (blocks.model != nullptr && IsTensorParallel(stage)) slices = SlicesOfStage(*blocks.model, stage);
    const bool cut = slices.ok() && !slices->empty();
    const OwnedRanges* layer = nullptr;  // of the one before
    for (const size_t block : UnitsOfStage(pipeline, s, held.size())) {
      if (!cut) {
        held[block] = CutWhole(blocks.elements[block], shares, first_rank);
        continue;
      }
      const UnitSpec& unit = blocks.layout[block];
      const bool is_layer = unit.kind == UnitKind::kLayer;
      held[block] = is_layer && layer != nullptr ? *layer : CutSlices(unit, *slices, shares, first_rank);
      if (is_layer) layer = &held[block];
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

Ownership ByShares(const Plan& plan, const Blocks& blocks) {
  std::vector<std::vector<OwnedRanges>> held;  // by pipeline
  int32_t first_rank = 0;
  for (const PipelinePlan& pipeline : plan.pipelines) {
    held.push_back(HeldBy(pipeline, first_rank, blocks));
    first_rank += NumRanks(pipeline);
  }
  Ownership ownership;
  for (size_t block = 0; block < blocks.elements.size(); ++block) {
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

Ownership OwnershipOf(const Plan& plan, const ModelShape& model) {
  if (plan.ownership) return *plan.ownership;
  std::vector<UnitSpec> layout = ParameterLayout(model);
  return ByShares(plan, {UnitElements(layout), &model, std::move(layout)});
}

Ownership OwnershipOf(const Plan& plan, const std::vector<int64_t>& elements) {
  return plan.ownership ? *plan.ownership : ByShares(plan, {elements, nullptr, {}});
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
  ForEachStage(*plan, [](StagePlan& stage) {
    for (UnitPlan& unit : stage.units) {
      for (RankPlan& rank : unit.ranks) rank.shard_ratio = ShareOf(stage, rank);
    }
    stage.zero_stage = std::max(stage.zero_stage, 1);
  });
}

void GiveOwnership(const ModelShape& model, Plan* plan) {
  SnapShares(model, plan);
  ShareReplicas(plan);
  if (!plan->ownership) plan->ownership = OwnershipOf(*plan, model);
  SetShardRatios(plan);
}

void SetShardRatios(Plan* plan) {
  size_t world = 0;
  for (const PipelinePlan& pipeline : plan->pipelines) world += static_cast<size_t>(NumRanks(pipeline));
  const std::vector<double> owned = plan->ownership->NumOwnedByRank(world);
  auto next = owned.begin();
  ForEachStage(*plan, [&next](StagePlan& stage) {
    const auto end = next + NumRanks(stage);
    const double whole = std::accumulate(next, end, 0.0);
    for (UnitPlan& unit : stage.units) {
      for (RankPlan& rank : unit.ranks) rank.shard_ratio = *next++ / std::max(1.0, whole);
    }
  });
}

}  // namespace motley::planner
