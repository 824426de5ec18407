#include "planner/lowering/stage_script.h"

#include <algorithm>
#include <utility>

#include "planner/plan/ownership.h"

namespace motley::planner {
namespace {

// Buffers in turn for parameters that are gathered and for gradients that are reduced.
constexpr size_t kInTurn = 2;

// Buffers that units take and leave.
class Pool {
 public:
  explicit Pool(std::vector<UnitBuffer>* buffers) : buffers_(*buffers) {}

  struct Place {
    int32_t unit = -1;
    int32_t last_use = -1;
    bool pinned = false;
    bool busy = false;  // not to be taken
  };

  int32_t Add(int64_t elements, int32_t unit, int32_t home_of, bool pinned) {
    buffers_.push_back({elements, home_of});
    places_.push_back({unit, -1, pinned, false});
    return static_cast<int32_t>(places_.size()) - 1;
  }
  int32_t Find(int32_t unit) const {
    for (size_t b = 0; b < places_.size(); ++b) {
      if (places_[b].unit == unit) return static_cast<int32_t>(b);
    }
    return -1;
  }
  // The buffer whose last use is longest ago; a new one while there are not two, or none is to be had.
  int32_t Take(int64_t elements, int32_t unit) {
    int32_t best = -1;
    size_t in_turn = 0;
    for (size_t b = 0; b < places_.size(); ++b) {
      const Place& place = places_[b];
      in_turn += place.pinned ? 0 : 1;
      if (place.pinned || place.busy || (best >= 0 && place.last_use >= places_[best].last_use)) continue;
      best = static_cast<int32_t>(b);
    }
    if (best < 0 || in_turn < kInTurn) return Add(elements, unit, -1, false);
    places_[best].unit = unit;
    buffers_[best].elements = std::max(buffers_[best].elements, elements);
    return best;
  }
  Place& operator[](int32_t buffer) { return places_[buffer]; }
  int32_t size() const { return static_cast<int32_t>(places_.size()); }

 private:
  std::vector<UnitBuffer>& buffers_;
  std::vector<Place> places_;
};

class Scripter {
 public:
  Scripter(const Setting& setting, const PlanView& view, int stage, const StageSchedule& schedule, bool training)
      : costs_(setting.costs),
        view_(view),
        stage_(view.stages[stage]),
        schedule_(schedule),
        training_(training),
        head_(static_cast<int32_t>(setting.workload.model.num_layers) + 1),
        tied_(setting.workload.model.tie_embeddings),
        elements_(view.pipelines[stage_.pipeline].elements),
        in_turn_(WorkOf(view, stage, tied_).residency == Residency::kInTurn),
        gathers_(stage_.shared() && stage_.plan->zero_stage == 3),
        reduces_in_turn_(stage_.shared() && stage_.plan->zero_stage >= 2),
        every_round_(reduces_in_turn_ && !TraitsOf(view.schedule).by_ministage),
        parameters_(&script_.parameter_buffers),
        gradients_(&script_.gradient_buffers) {}

  StageScript Script() {
    const size_t units = static_cast<size_t>(head_) + 1;
    for (const Element& element : elements_) {
      if (&view_.stages[element.stage] != &stage_) continue;
      for (const int32_t unit : UnitsOf(PartOf(element), false)) script_.units.push_back(unit);
    }
    std::sort(script_.units.begin(), script_.units.end());
    last_backward_.assign(units, -1);
    AddUses();
    script_.after.resize(script_.uses.size());
    AddHomes();
    for (size_t i = 0; i < script_.uses.size(); ++i) PlaceParameters(static_cast<int32_t>(i));
    ReleaseAll();
    for (size_t i = 0; training_ && i < script_.uses.size(); ++i) PlaceGradients(static_cast<int32_t>(i));
    return std::move(script_);
  }

 private:
  int64_t ElementsOfUnit(int32_t unit) const { return costs_.layout()[unit].num_elements; }
  AfterUse& After(int32_t use) { return use < 0 ? script_.before : script_.after[use]; }
  bool TiedApart() const { return tied_ && stage_.num_stages > 1 && (stage_.embedding || stage_.head); }

  // Blocks that are gathered in turn are used by all microbatches before the next.
  void AddUses() {
    for (const Action& action : schedule_.actions) {
      const bool backward = action.kind != ActionKind::kForward;
      const std::vector<int32_t> units = UnitsOf(PartOf(elements_[action.virtual_stage]), backward);
      for (int64_t round = action.first; round < (in_turn_ ? action.first + 1 : action.last); ++round) {
        for (size_t i = 0; i < units.size(); ++i) {
          AddUse({.backward = backward,
                  .unit = units[i],
                  .virtual_stage = action.virtual_stage,
                  .place = static_cast<int32_t>(i),
                  .num_places = static_cast<int32_t>(units.size()),
                  .round = in_turn_ ? kAllRounds : round});
        }
      }
    }
  }
  void AddUse(UnitUse use) {
    if (use.backward) last_backward_[use.unit] = static_cast<int32_t>(script_.uses.size());
    script_.uses.push_back(use);
  }

  // What stays: whole units, each in a buffer of its own; a tied embedding.
  void AddHomes() {
    if (TiedApart()) AddTiedApart();
    for (const int32_t unit : script_.units) {
      const bool apart = TiedApart() && unit == 0, kept = tied_ && unit == 0;
      if (!gathers_ && !apart) Gathered(parameters_.Add(ElementsOfUnit(unit), unit, unit, true), unit);
      if (gathers_ && kept && !apart) Gathered(parameters_.Add(ElementsOfUnit(unit), unit, -1, true), unit);
      if (!training_ || apart) continue;
      if (!reduces_in_turn_) gradients_.Add(ElementsOfUnit(unit), unit, unit, true);
      if (reduces_in_turn_ && kept) gradients_.Add(ElementsOfUnit(unit), unit, -1, true);
    }
    if (!tied_ || !stage_.head) return;
    script_.head_parameters = parameters_.Find(0);
    script_.head_gradients = training_ ? gradients_.Find(0) : -1;
  }
  void AddTiedApart() {
    const int32_t home = stage_.embedding && !gathers_ ? 0 : -1;
    script_.tied_parameters = parameters_.Add(ElementsOfUnit(0), 0, home, true);
    if (training_) {
      script_.tied_gradients = gradients_.Add(ElementsOfUnit(0), 0, stage_.embedding && !reduces_in_turn_ ? 0 : -1, true);
    }
  }
  void Gathered(int32_t buffer, int32_t unit) { script_.before.gathered.push_back({unit, buffer}); }

  void PlaceParameters(int32_t i) {
    UnitUse& use = script_.uses[i];
    use.parameters = parameters_.Find(use.unit);
    if (use.parameters < 0) {
      const int32_t before = parameters_.size();
      use.parameters = parameters_.Take(ElementsOfUnit(use.unit), use.unit);
      const int32_t last = parameters_[use.parameters].last_use;
      if (use.parameters < before) After(last).released.push_back(use.parameters);
      After(last).gathered.push_back({use.unit, use.parameters});
      use.waits_for = std::max(use.waits_for, last);
    }
    parameters_[use.parameters].last_use = i;
    if (use.unit == head_ && script_.head_parameters >= 0) parameters_[script_.head_parameters].last_use = i;
  }
  void ReleaseAll() {
    for (int32_t b = 0; b < parameters_.size(); ++b) {
      if (script_.parameter_buffers[b].home_of >= 0 || parameters_[b].last_use < 0) continue;
      After(parameters_[b].last_use).released.push_back(b);
    }
  }

  void PlaceGradients(int32_t i) {
    UnitUse& use = script_.uses[i];
    if (!use.backward) return;
    use.gradients = gradients_.Find(use.unit);
    if (use.gradients < 0) use.gradients = gradients_.Take(ElementsOfUnit(use.unit), use.unit);
    Pool::Place& place = gradients_[use.gradients];
    use.waits_for = std::max(use.waits_for, place.last_use);
    place.busy = true;
    const bool final = i == last_backward_[use.unit];
    if (use.gradients != script_.tied_gradients && (final || (every_round_ && !place.pinned))) {
      Reduce(i, use.unit, use.gradients);
    }
    // The head's part of a tied embedding's gradient goes while the layers compute.
    if (final && use.unit == head_ && script_.head_gradients >= 0 && stage_.embedding && reduces_in_turn_ && !every_round_) {
      Reduce(i, 0, script_.head_gradients);
    }
  }
  void Reduce(int32_t use, int32_t unit, int32_t buffer) {
    script_.after[use].reduced.push_back({unit, buffer});
    Pool::Place& place = gradients_[buffer];
    place.busy = false;
    place.last_use = use;
    if (!place.pinned) place.unit = -1;
  }

  const Costs& costs_;
  const PlanView& view_;
  const StageView& stage_;
  const StageSchedule& schedule_;
  const bool training_;
  const int32_t head_;
  const bool tied_;
  const std::vector<Element>& elements_;
  const bool in_turn_;
  const bool gathers_, reduces_in_turn_, every_round_;
  StageScript script_;
  Pool parameters_, gradients_;
  std::vector<int32_t> last_backward_;  // by unit: its last use
};

}  // namespace

Part PartOf(const Element& element) { return {element.embedding, element.first_layer, element.layers, element.head}; }

std::vector<int32_t> UnitsOf(const Part& part, bool backward) {
  std::vector<int32_t> units;
  if (part.embedding) units.push_back(0);
  const auto first = static_cast<int32_t>(part.first_layer) + 1, layers = static_cast<int32_t>(part.layers);
  for (int32_t i = 0; i < layers; ++i) units.push_back(first + i);
  if (part.head) units.push_back(first + layers);
  if (backward) std::reverse(units.begin(), units.end());
  return units;
}

StageScript ScriptOf(const Setting& setting, const PlanView& view, int stage, const StageSchedule& schedule, bool training) {
  return Scripter(setting, view, stage, schedule, training).Script();
}

}  // namespace motley::planner
