// A plan as the lowering and the estimator see it: devices and recomputation sets resolved once, equal ranks merged into actors,
// the order of the ministages, and which samples every microbatch stands for. A plain value; refers to the plan it was made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/costs/memory_model.h"
#include "planner/plan/op_set.h"
#include "planner/plan/plan.h"
#include "planner/plan/state_in_turn.h"
#include "planner/setting/setting.h"
#include "planner/view/part.h"

namespace motley::planner {

struct RankView {
  int device = 0, kind = 0;
  int pipeline = 0, stage = 0, unit = 0;  // stage: into PlanView::stages
  double share = 0;                       // of the stage's sharded state
  OpSet recompute;
  const RankPlan* plan = nullptr;
};

// Units whose ranks have equal kinds, duties and links. They do the same at the same time.
struct ActorView {
  int stage = 0;       // into PlanView::stages
  int first_rank = 0;  // into PlanView::ranks: of the first unit, which stands for all
  int ranks_per_unit = 1;
  std::vector<int> unit_ranks;                         // first rank of each unit
  const std::vector<int64_t>* microbatches = nullptr;  // of each unit
  std::vector<int64_t> begin;  // by microbatch: the first sample of the pipeline's batch that it stands for
  int64_t units() const { return static_cast<int64_t>(unit_ranks.size()); }
  int64_t count() const { return static_cast<int64_t>(microbatches->size()); }
  int64_t size(int64_t k) const { return (*microbatches)[k]; }    // of one unit
  int64_t samples(int64_t k) const { return units() * size(k); }  // of all of them
};

struct StageView {
  int pipeline = 0, index = 0, num_stages = 1;
  const StagePlan* plan = nullptr;
  bool embedding = false, head = false;
  bool tied_copy = false;  // the head computes with a copy of an embedding that lives in another stage
  int64_t layers = 0, largest_ministage = 0;
  int first_rank = 0, num_ranks = 0, num_units = 0;
  std::vector<int> actors;  // into PlanView::actors
  // The largest microbatch of the stages that hand over to this one; 0 = there are none.
  int64_t from_previous = 0, from_next = 0;
  StateInTurn state;
  bool shared() const { return state.shared(); }
};

// One ministage in the order in which a microbatch passes them.
struct Element : Part {
  int stage = 0;  // into PlanView::stages
  int ministage = 0;
};

struct PipelineView {
  int first_stage = 0, num_stages = 0;
  int64_t batch = 0;
  std::vector<Element> elements;
  int embedding_stage() const { return elements.front().stage; }  // into PlanView::stages
  int head_stage() const { return elements.back().stage; }
};

struct PlanView {
  ScheduleFamily schedule = ScheduleFamily::kLayered;
  int pipelines_zero_stage = 0;
  std::vector<RankView> ranks;  // in plan order
  std::vector<StageView> stages;
  std::vector<ActorView> actors;
  std::vector<PipelineView> pipelines;
  std::vector<int> actor_of_rank;
};

struct ViewOptions {
  bool merge = true;           // equal units become one actor; otherwise each is its own
  bool assign_samples = true;  // ActorView::begin
};
// INVALID_ARGUMENT: a device that the setting does not have, or one named twice; a recomputation set that is not known.
absl::StatusOr<PlanView> ViewOf(const Setting& setting, const Plan& plan, ViewOptions options = {});

// The rank's tensor-parallel unit for people: "n1/gpu0+n2/gpu0 (tp 0.75/0.25)". Empty: the rank is alone in it.
std::string UnitText(const PlanView& view, const RankView& rank);

// What the ledger needs to know of a rank.
RankDuty DutyOf(const PlanView& view, const RankView& rank);

// Families that take it (ScheduleTraits::takes_in_flight): forwards without their backward that a unit of `count` microbatches
// keeps at most: StagePlan::in_flight or the schedule's own. Where the plan says so of a stage, no later one waits for more than
// that lets through.
int64_t MostInFlight(const PlanView& view, const StageView& stage, int64_t count);

// Elements of the model's arrays that a ministage holds; a tied head's copy of the embedding counts.
int64_t ElementsOf(const Costs& costs, const PlanView& view, const Element& element);

}  // namespace motley::planner
