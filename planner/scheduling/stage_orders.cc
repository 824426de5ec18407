#include "planner/scheduling/stage_orders.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "planner/costs/memory_model.h"

namespace motley::planner {
namespace {

// Times that a limit is raised by one before it is raised faster.
constexpr int64_t kCarefully = 16;

}  // namespace

std::vector<StagePlace> StagePlaces(const PlanView& view, const PipelineView& pipeline) {
  std::vector<StagePlace> places(static_cast<size_t>(pipeline.num_stages));
  for (size_t v = 0; v < pipeline.elements.size(); ++v) {
    places[pipeline.elements[v].stage - pipeline.first_stage].virtual_stages.push_back(static_cast<int32_t>(v));
  }
  for (int s = 0; s < pipeline.num_stages; ++s) {
    const StageView& stage = view.stages[pipeline.first_stage + s];
    StagePlace& place = places[s];
    place.index = s;
    place.num_stages = pipeline.num_stages;
    for (const int actor : stage.actors) place.rounds = std::max(place.rounds, view.actors[actor].count());
    place.limit = TraitsOf(view.schedule).takes_in_flight
                      ? MostInFlight(view, stage, place.rounds)
                      : InFlight(view.schedule, s, pipeline.num_stages, std::ssize(place.virtual_stages), place.rounds);
  }
  return places;
}

OrderMender::OrderMender(ScheduleFamily family, std::vector<StagePlace> places) : family_(family), places_(std::move(places)) {
  for (const StagePlace& place : places_) orders_.push_back(FamilyOrder(family_, place));
}

bool OrderMender::Mend(const std::vector<ForwardAhead>& could_run_ahead) {
  if (by_virtual_stage_) return false;
  if (could_run_ahead.empty() || TraitsOf(family_).fixed_order) {
    by_virtual_stage_ = true;
    for (size_t s = 0; s < places_.size(); ++s) orders_[s] = OrderByVirtualStage(family_, places_[s]);
    return true;
  }
  const ForwardAhead& ahead = could_run_ahead.back();
  StagePlace& place = places_[ahead.stage];
  const int64_t more = std::max<int64_t>(1, tries_++ < kCarefully ? 1 : place.limit);
  place.limit = std::max(place.limit + more, ahead.in_flight);
  orders_[ahead.stage] = FamilyOrder(family_, place);
  return true;
}

}  // namespace motley::planner
