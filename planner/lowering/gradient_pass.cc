#include <algorithm>
#include <utility>
#include <vector>

#include "planner/lowering/buffer_pool.h"
#include "planner/lowering/stage_passes.h"

namespace motley::planner {
namespace {

class GradientPass {
 public:
  GradientPass(StageSteps stage, const StageTraits& traits) : traits_(traits), stage_(std::move(stage)) {}

  StageSteps Run() {
    Keep();
    std::vector<int32_t> last_of_unit(traits_.elements.size(), -1);
    for (int32_t i = 0; i < num_steps(); ++i) {
      const StageStep& step = stage_.steps[i];
      for (int32_t unit = step.unit; step.makes_gradients() && unit <= step.last_unit(); ++unit) last_of_unit[unit] = i;
    }
    for (int32_t i = 0; i < num_steps(); ++i) {
      if (stage_.steps[i].makes_gradients()) Place(i, !across() && i == last_of_unit[stage_.steps[i].unit]);
    }
    if (across()) ReduceAcross(last_of_unit);
    // Each end has added its part of a tied embedding's gradient.
    if (apart_ >= 0 && !across()) stage_.steps.back().reduced.push_back({0, apart_, traits_.tied_group, !traits_.gathers_tied});
    stage_.gradient_buffers = pool_.Buffers();
    return std::move(stage_);
  }

 private:
  bool gathers() const { return traits_.gathers_homes || traits_.gathers_in_turn; }
  bool across() const { return !traits_.sum_group.empty(); }  // pipelines
  int32_t num_steps() const { return static_cast<int32_t>(stage_.steps.size()); }

  void Keep() {
    const bool home = !traits_.reduces_in_turn;
    if (traits_.tied_group >= 0) apart_ = pool_.Keep(0, traits_.elements[0], home && traits_.has_embedding());
    for (const int32_t unit : traits_.units) {
      const bool is_tied = traits_.tied && unit == 0;
      if (is_tied ? apart_ < 0 : home || traits_.streams) pool_.Keep(unit, traits_.elements[unit], home);
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
    const bool reduces = last || (traits_.reduces_every_round && (traits_.streams || !place.stays));
    if (reduces && step.gradients != apart_) Reduce(i, step.unit, step.gradients);
    // The head's part of a tied embedding's gradient goes while the layers compute.
    const bool head_tied = step.unit == traits_.head() && stage_.tied_gradients >= 0 && apart_ < 0;
    if (last && head_tied && traits_.reduces_in_turn && !traits_.reduces_every_round) Reduce(i, 0, stage_.tied_gradients);
  }
  // Stages that hold some of the same units need one order of them: each goes when it and all before it in that order are
  // complete. All gathers are before the first step: then nothing that is computed waits for other pipelines.
  void ReduceAcross(const std::vector<int32_t>& last_of_unit) {
    int32_t at = 0;
    for (const int32_t unit : traits_.sum_order) {
      const int32_t buffer = pool_.Find(unit);
      if (buffer < 0) continue;
      at = std::max(at, last_of_unit[unit]);
      stage_.steps[at].reduced.push_back({unit, buffer, traits_.sum_group[unit], !traits_.gathers_homes});
    }
  }
  void Reduce(int32_t i, int32_t unit, int32_t buffer) {
    if (traits_.reduces) stage_.steps[i].reduced.push_back({unit, buffer, traits_.group, !gathers()});
    BufferPool::Place& place = pool_[buffer];
    place.busy = false;
    place.last_step = i;
    if (!place.stays) place.unit = -1;
  }

  const StageTraits& traits_;
  StageSteps stage_;
  BufferPool pool_;
  int32_t apart_ = -1;  // the buffer of a tied embedding that lies on two stages
};

}  // namespace

StageSteps WithGradients(StageSteps stage, const StageTraits& traits) { return GradientPass(std::move(stage), traits).Run(); }

}  // namespace motley::planner
