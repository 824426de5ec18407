#include <algorithm>
#include <utility>
#include <vector>

#include "planner/lowering/buffer_pool.h"
#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

class GradientPass {
 public:
  GradientPass(StageSteps stage, const StageTraits& traits)
      : traits_(traits), stage_(std::move(stage)), pool_(kBuffersInTurn), shards_(traits.elements.size(), -1) {}

  StageSteps Run() {
    Keep();
    std::vector<int32_t> last_of_unit(traits_.elements.size(), -1);
    for (int32_t i = 0; i < num_steps(); ++i) {
      const StageStep& step = stage_.steps[i];
      for (int32_t unit = step.unit; step.makes_gradients() && unit <= step.last_unit(); ++unit) last_of_unit[unit] = i;
    }
    for (int32_t i = 0; i < num_steps(); ++i) {
      const StageStep& step = stage_.steps[i];
      if (step.makes_gradients()) Place(i, (!across() || ComesInTurn(step.unit)) && i == last_of_unit[step.unit]);
    }
    if (across()) ReduceAcross(last_of_unit);
    // Each end has added its part of a tied embedding's gradient.
    if (apart_ >= 0 && !across()) stage_.steps.back().reduced.push_back({0, apart_, traits_.tied_group});
    stage_.gradient_buffers = pool_.Buffers();
    return std::move(stage_);
  }

 private:
  bool across() const { return traits_.across(); }  // pipelines
  bool ComesInTurn(int32_t unit) const { return traits_.reduces_in_turn && (!across() || traits_.KeepsShards(unit)); }
  int32_t num_steps() const { return static_cast<int32_t>(stage_.steps.size()); }

  void Keep() {
    const bool home = across() || !traits_.reduces_in_turn;
    if (traits_.tied_group >= 0) apart_ = pool_.Keep(0, traits_.elements[0], home && traits_.has_embedding());
    for (const int32_t unit : traits_.units) {
      const bool is_tied = traits_.tied && unit == 0;
      const bool in_turn = ComesInTurn(unit);
      if (in_turn && across()) shards_[unit] = pool_.KeepShard(unit, traits_.elements[unit], traits_.group);
      if (is_tied ? apart_ < 0 : !in_turn || traits_.streams) pool_.Keep(unit, traits_.elements[unit], home && !in_turn);
    }
    if (traits_.tied && traits_.has_head()) stage_.tied_gradients = pool_.Find(0);
  }

  void Place(int32_t i, bool last) {
    StageStep& step = stage_.steps[i];
    step.gradients = pool_.Find(step.unit);
    if (step.gradients < 0) step.gradients = pool_.Take(step.unit, traits_.elements[step.unit]);
    BufferPool::Place& place = pool_[step.gradients];
    step.waits_for = std::max(step.waits_for, place.last_step);
    place.busy = true;
    const bool each = traits_.reduces_every_round && ComesInTurn(step.unit);
    const bool reduces = last || (each && (traits_.streams || !place.stays));
    if (reduces && step.gradients != apart_) Reduce(i, step.unit, step.gradients);
    // The head's part of a tied embedding's gradient goes while the layers compute.
    const bool head_tied = step.unit == traits_.head() && stage_.tied_gradients >= 0 && apart_ < 0 && !across();
    const bool apart = traits_.reduces_in_turn && !traits_.reduces_every_round && !traits_.sums_once;
    if (last && head_tied && apart) Reduce(i, 0, stage_.tied_gradients);
  }
  // Stages that hold some of the same units need one order of them: each goes when it and all before it in that order are
  // complete. All gathers between pipelines are before the first step. Where what a stage gathers and reduces in turn is before
  // their sums, too, nothing that is computed waits for other pipelines.
  void ReduceAcross(const std::vector<int32_t>& last_of_unit) {
    int32_t at = 0;
    for (int32_t i = 0; i < num_steps() && !traits_.sums_at_once; ++i) {
      if (!stage_.steps[i].gathered.empty() || !stage_.steps[i].reduced.empty()) at = i;
    }
    for (const int32_t unit : traits_.sum_order) {
      const int32_t buffer = shards_[unit] >= 0 ? shards_[unit] : pool_.Find(unit);
      if (buffer < 0) continue;
      at = std::max(at, last_of_unit[unit]);
      stage_.steps[at].reduced.push_back({unit, buffer, traits_.sum_group[unit]});
    }
  }
  void Reduce(int32_t i, int32_t unit, int32_t buffer) {
    if (!traits_.alone) stage_.steps[i].reduced.push_back({unit, buffer, traits_.group});
    BufferPool::Place& place = pool_[buffer];
    place.busy = false;
    place.last_step = i;
    if (!place.stays) place.unit = -1;
  }

  const StageTraits& traits_;
  StageSteps stage_;
  BufferPool pool_;
  int32_t apart_ = -1;           // the buffer of a tied embedding that lies on two stages
  std::vector<int32_t> shards_;  // by unit: the buffer of what the ranks keep of it; -1 = none
};

}  // namespace

StageSteps WithGradients(StageSteps stage, const StageTraits& traits) { return GradientPass(std::move(stage), traits).Run(); }

}  // namespace motley::planner
