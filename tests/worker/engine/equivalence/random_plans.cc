#include "tests/worker/engine/equivalence/random_plans.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/model/model_slice.h"
#include "common/model/parameters.h"
#include "planner/plan/each_rank.h"
#include "planner/plan/ownership.h"
#include "planner/plan/shared_slices.h"
#include "planner/plan/unit_slices.h"

namespace motley::engine {

using planner::ScheduleFamily;

std::vector<int64_t> RandomEnginePlan::Cut(int64_t total, int64_t parts, int64_t least) {
  std::vector<int64_t> cuts;
  for (int64_t i = 1; i < parts; ++i) cuts.push_back(Below(total - least * parts + 1));
  cuts.push_back(total - least * parts);
  std::sort(cuts.begin(), cuts.end());
  std::vector<int64_t> result;
  for (int64_t before = 0; const int64_t cut : cuts) {
    result.push_back(cut - before + least);
    before = cut;
  }
  return result;
}

// Interleaved wants equal counts on every unit that computes, a multiple of the stages.
void RandomEnginePlan::DrawBatches(ScheduleFamily schedule, int64_t batch, int64_t stages, int64_t rounds,
                                   planner::StagePlan& stage) {
  const auto units = static_cast<int64_t>(stage.units.size());
  if (schedule == ScheduleFamily::kInterleaved && stages > 1 && rounds > 1) {
    // The count is the plan's, not the stage's: as many as fit the batch, by the number of stages alone.
    const int64_t count = 2 * stages <= batch && batch % 2 == 0 ? 2 * stages : stages;
    const int64_t computing = 1 + Below(std::min(units, batch / count));
    const std::vector<int64_t> sizes = Cut(batch, computing * count, 1);
    for (int64_t u = 0; u < computing; ++u) {
      stage.units[u].microbatches.assign(sizes.begin() + u * count, sizes.begin() + (u + 1) * count);
    }
  } else {
    const std::vector<int64_t> batches = Cut(batch, units, 0);
    for (int64_t u = 0; u < units; ++u) {
      if (batches[u] > 0) stage.units[u].microbatches = Cut(batches[u], 1 + Below(std::min<int64_t>(batches[u], 4)), 1);
    }
  }
  std::shuffle(stage.units.begin(), stage.units.end(), random_);
}

// Any set of a layer's operators, those that free nothing among them.
planner::OpSet RandomEnginePlan::DrawRecompute(const ModelShape& model, bool sums) {
  if (Sometimes(2)) return planner::OpSet::None();
  if (Sometimes(3)) return planner::OpSet::All();
  planner::OpSet set;
  for (int op = static_cast<int>(Op::kNorm1); op <= static_cast<int>(Op::kResidual2); ++op) {
    const bool is_sum = op == static_cast<int>(Op::kAttnOut) || op == static_cast<int>(Op::kResidual1);
    if (Sometimes(2) && !(sums && is_sum)) set = set.With(static_cast<Op>(op));
  }
  if (TraitsOf(model.family).head_norm != HeadNorm::kNone && Sometimes(2)) set = set.With(Op::kHeadNorm);
  if (TraitsOf(model.family).norm_places == NormPlaces::kBoth) {
    for (const Op op : {Op::kBehind1, Op::kBehind2}) set = Sometimes(2) ? set.With(op) : set;
  }
  return set;
}

void RandomEnginePlan::DrawUnits(const ModelShape& model, int64_t devices, planner::StagePlan& stage) {
  const int64_t parts = NumParts(model);
  const bool wide = widths_ == UnitWidths::kUpToFour && devices > 1 && parts > 1 && Sometimes(2), unlike = wide && Sometimes(3);
  const auto draw_width = [&](int64_t least, int64_t left) {
    return least + Below(std::min<int64_t>({left, parts, 4}) - least + 1);
  };
  int64_t width = wide ? draw_width(2, devices) : 1;
  std::vector<int64_t> heads = Cut(parts, width, 1);
  for (int64_t left = devices; left >= width;) {
    planner::UnitPlan& unit = stage.units.emplace_back();
    for (const int64_t own : heads) {
      planner::RankPlan& rank = unit.ranks.emplace_back();
      rank.tp_share = static_cast<double>(own) / static_cast<double>(parts);
      rank.recompute = DrawRecompute(model, width > 1);
    }
    left -= width;
    if (!unlike || left == 0) continue;
    width = draw_width(1, left);
    heads = Cut(parts, width, 1);
  }
}

// Some of 16 parts: zeros are as likely as others. A unit alone stores what it computes.
void RandomEnginePlan::DrawShares(planner::StagePlan& stage) {
  std::vector<planner::RankPlan*> ranks;
  for (planner::UnitPlan& unit : stage.units) {
    for (planner::RankPlan& rank : unit.ranks) ranks.push_back(&rank);
  }
  const std::vector<int64_t> parts = Cut(16, static_cast<int64_t>(ranks.size()), 0);
  for (size_t r = 0; r < ranks.size(); ++r) {
    ranks[r]->shard_ratio = stage.units.size() == 1 ? ranks[r]->tp_share : static_cast<double>(parts[r]) / 16;
  }
}

// Ranges in any order of the ranks that compute with them, several of a rank, other ones of each block.
void RandomEnginePlan::DrawOwnership(const ModelShape& model, planner::Plan& plan) {
  const std::vector<UnitSpec> layout = ParameterLayout(model);
  const std::vector<ModelSlice> slices = *planner::SlicesOfRanks(model, plan);
  std::vector<std::vector<int32_t>> holders(layout.size());
  int32_t rank = 0;
  for (planner::PipelinePlan& pipeline : plan.pipelines) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      planner::StagePlan& stage = pipeline.stages[s];
      if (stage.zero_stage == 0) stage.zero_stage = 1 + static_cast<int>(Below(3));
      const std::vector<size_t> blocks = planner::UnitsOfStage(pipeline, s, layout.size());
      for (const planner::UnitPlan& unit : stage.units) {
        for (size_t r = 0; r < unit.ranks.size(); ++r, ++rank) {
          for (const size_t block : blocks) holders[block].push_back(rank);
        }
      }
    }
  }
  plan.ownership.emplace();
  for (size_t block = 0; block < layout.size(); ++block) {
    OwnedRanges ranges;
    const auto draw = [&](int64_t begin, int64_t elements, size_t pieces, const std::vector<int32_t>& owners) {
      for (const int64_t size : Cut(elements, static_cast<int64_t>(pieces), 0)) {
        ranges.push_back({owners[Below(static_cast<int64_t>(owners.size()))], begin, begin + size});
        begin += size;
      }
    };
    for (const planner::SharedSlice& shared : planner::SharedSlicesOf(slices, holders[block])) {
      for (const SliceRun& run : planner::DividedRunsOf(layout[block], shared.slice)) {
        draw(run.in_unit, run.elements, 2 * shared.ranks.size(), shared.ranks);
      }
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const OwnedRange& a, const OwnedRange& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    const int64_t divided = layout[block].divided_elements;
    draw(divided, layout[block].num_elements - divided, 2 * holders[block].size(), holders[block]);
    plan.ownership->Add(ranges);
  }
  planner::SetShardRatios(&plan);
}

planner::PipelinePlan RandomEnginePlan::DrawPipeline(const TinyJob& job, const planner::Plan& plan, int64_t devices,
                                                     int64_t batch) {
  const int64_t layers = job.model.num_layers;
  const bool in_v = plan.schedule == ScheduleFamily::kZeroBubbleV;
  // In a V each of several stages has two ministages.
  int64_t stages = 1 + Below(std::min({devices, in_v ? layers / 2 : layers, int64_t{4}}));
  const bool several = plan.schedule == ScheduleFamily::kLayered || plan.schedule == ScheduleFamily::kInterleaved;
  if (plan.schedule == ScheduleFamily::kInterleaved) stages = std::min(stages, batch);  // as many microbatches
  const int64_t rounds = several ? 1 + Below(std::min<int64_t>(3, layers / stages)) : in_v && stages > 1 ? 2 : 1;
  const std::vector<int64_t> sizes = Cut(layers, stages * rounds, 1), widths = Cut(devices, stages, 1);
  planner::PipelinePlan pipeline;
  pipeline.stages.resize(stages);
  for (int64_t piece = 0, first = 0; piece < stages * rounds; first += sizes[piece++]) {
    const int64_t stage = in_v && piece >= stages ? 2 * stages - 1 - piece : piece % stages;
    pipeline.stages[stage].ministages.push_back({first, first + sizes[piece] - 1});
  }
  for (int64_t s = 0; s < stages; ++s) {
    planner::StagePlan& stage = pipeline.stages[s];
    stage.zero_stage = static_cast<int>(Below(4));
    if (planner::TraitsOf(plan.schedule).takes_in_flight && Sometimes(2)) stage.in_flight = 1 + Below(4);
    DrawUnits(job.model, widths[s], stage);
    DrawBatches(plan.schedule, batch, stages, rounds, stage);
    DrawShares(stage);
  }
  return pipeline;
}

planner::Plan RandomEnginePlan::Draw(const TinyJob& job, int64_t pipelines) {
  planner::Plan plan;
  plan.strategy = "random";
  plan.epoch = Epoch(1);
  plan.global_batch = job.config.training.global_batch_size;
  plan.seq_len = job.config.training.seq_len;
  plan.dtype = PrecisionOf(job.config.training)->compute;
  plan.schedule = static_cast<ScheduleFamily>(Below(6));
  const int64_t devices = pipelines + Below(9 - pipelines);
  const std::vector<int64_t> widths = Cut(devices, pipelines, 1), batches = Cut(plan.global_batch, pipelines, 1);
  if (pipelines > 1) plan.pipelines_zero_stage = static_cast<int>(Below(3));
  for (int64_t p = 0; p < pipelines; ++p) {
    plan.pipelines.push_back(DrawPipeline(job, plan, widths[p], batches[p]));
  }
  int device = 0;
  planner::ForEachRank(plan, [&](planner::RankPlan& rank) { rank.device = DeviceId("n" + std::to_string(device++) + "/gpu0"); });
  if (Sometimes(3)) DrawOwnership(job.model, plan);
  return plan;
}

}  // namespace motley::engine
