#include "planner/lowering/pipeline_places.h"

#include <algorithm>
#include <numeric>

#include "common/model/parameters.h"
#include "planner/lowering/ring_order.h"
#include "planner/plan/placement.h"
#include "planner/plan/shared_slices.h"

namespace motley::planner {
namespace {

// Nodes and ranks in the plan's order.
std::vector<int32_t> ByNode(const Setting& setting, const PlanView& view, const std::vector<int32_t>& ranks) {
  std::vector<int32_t> ring;
  std::vector<bool> taken(ranks.size(), false);
  const auto node_of = [&](int32_t rank) { return setting.cluster.devices[view.ranks[rank].device].node; };
  for (size_t i = 0; i < ranks.size(); ++i) {
    for (size_t j = i; j < ranks.size(); ++j) {
      if (taken[j] || node_of(ranks[j]) != node_of(ranks[i])) continue;
      taken[j] = true;
      ring.push_back(ranks[j]);
    }
  }
  return ring;
}

std::vector<int32_t> RanksOf(const PlanView& view, const std::vector<int>& stages) {
  std::vector<int32_t> ranks;
  for (const int s : stages) {
    for (int i = 0; i < view.stages[s].num_ranks; ++i) ranks.push_back(view.stages[s].first_rank + i);
  }
  return ranks;
}

void AddTiedGroup(const Setting& setting, const PlanView& view, const PipelineView& pipeline, PipelinePlaces* places) {
  const int first = pipeline.embedding_stage(), last = pipeline.head_stage();
  const bool apart = setting.workload.model.tie_embeddings && first != last;
  places->tied_group.push_back(apart ? static_cast<int32_t>(places->groups.size()) : -1);
  if (apart) places->groups.push_back(ByNode(setting, view, RanksOf(view, {first, last})));
}

// Its place in the list, where each is once, however many units it serves.
int32_t ListedGroup(const std::vector<int32_t>& group, PipelinePlaces* places) {
  const auto listed = std::find(places->groups.begin(), places->groups.end(), group);
  const auto place = static_cast<int32_t>(listed - places->groups.begin());
  if (listed == places->groups.end()) places->groups.push_back(group);
  return place;
}

void AddSumGroups(const Setting& setting, const PlanView& view, PipelinePlaces* places) {
  for (const std::vector<int>& stages : HoldersOf(view, UnitsAsBlocks(setting), setting.workload.model.tie_embeddings)) {
    places->sum_group.push_back(ListedGroup(ByNode(setting, view, RanksOf(view, stages)), places));
  }
}

void AddUnitGroups(const Setting& setting, const PlanView& view, PipelinePlaces* places) {
  places->tp_group.assign(view.ranks.size(), -1);
  for (const ActorView& unit : view.actors) {
    if (unit.ranks_per_unit == 1) continue;
    std::vector<int32_t> ranks(static_cast<size_t>(unit.ranks_per_unit));
    std::iota(ranks.begin(), ranks.end(), unit.first_rank);
    const int32_t group = ListedGroup(ByNode(setting, view, ranks), places);
    for (const int32_t rank : ranks) places->tp_group[rank] = group;
  }
}

// Where elements of a unit lie in the array of a rank with a slice of it.
int64_t InArray(const std::vector<SliceRun>& runs, int64_t in_unit) {
  const auto run =
      std::find_if(runs.begin(), runs.end(), [in_unit](const SliceRun& r) { return in_unit < r.in_unit + r.elements; });
  return run->in_slice + in_unit - run->in_unit;
}

// Whom the ranks of a unit meet for what of it. All who have some elements name them alike: in one piece where their slices are
// the same, else by the runs that the elements are in the unit's own array.
class SharedUnit {
 public:
  SharedUnit(const Setting& setting, const PlanView& view, const std::vector<ModelSlice>& slices, int32_t unit,
             const std::vector<int32_t>& ranks, PipelinePlaces* places)
      : setting_(setting),
        view_(view),
        slices_(slices),
        spec_(setting.costs.layout()[unit]),
        unit_(unit),
        ranks_(ranks),
        places_(*places) {}

  void Add() {
    for (const SharedSlice& shared : SharedSlicesOf(slices_, ranks_)) AddSlice(shared);
    const int64_t rest = spec_.num_elements - spec_.divided_elements;
    if (rest == 0) return;
    const int32_t group = GroupOf(ranks_);
    for (const int32_t rank : ranks_) {
      const SliceRun last = RunsOf(spec_, slices_[rank]).back();
      At(rank).push_back({group, {last.in_slice + last.elements - rest, rest}});
    }
  }

 private:
  SharedElements& At(int32_t rank) { return places_.shared[rank][unit_]; }
  int32_t GroupOf(const std::vector<int32_t>& ranks) { return ListedGroup(ByNode(setting_, view_, ranks), &places_); }

  void AddSlice(const SharedSlice& shared) {
    const std::vector<SliceRun> runs = DividedRunsOf(spec_, shared.slice);
    if (runs.empty()) return;
    const int32_t group = GroupOf(shared.ranks);
    const ModelSlice& first = slices_[shared.ranks.front()];
    const bool alike =
        (first == shared.slice || (first.whole() && shared.slice.whole())) &&
        std::all_of(shared.ranks.begin(), shared.ranks.end(), [&](int32_t rank) { return slices_[rank] == first; });
    for (const int32_t rank : shared.ranks) {
      if (alike) {
        At(rank).push_back({group, {0, runs.back().in_slice + runs.back().elements}});
        continue;
      }
      const std::vector<SliceRun> own = RunsOf(spec_, slices_[rank]);
      for (const SliceRun& run : runs) At(rank).push_back({group, {InArray(own, run.in_unit), run.elements}});
    }
  }

  const Setting& setting_;
  const PlanView& view_;
  const std::vector<ModelSlice>& slices_;
  const UnitSpec& spec_;
  const int32_t unit_;
  const std::vector<int32_t>& ranks_;
  PipelinePlaces& places_;
};

void AddShared(const Setting& setting, const PlanView& view, const std::vector<ModelSlice>& slices, PipelinePlaces* places) {
  const auto holders = HoldersOf(view, UnitsAsBlocks(setting), setting.workload.model.tie_embeddings);
  places->shared.assign(view.ranks.size(), std::vector<SharedElements>(holders.size()));
  for (size_t unit = 0; unit < holders.size(); ++unit) {
    const std::vector<int32_t> ranks = RanksOf(view, holders[unit]);
    if (std::all_of(ranks.begin(), ranks.end(), [&](int32_t rank) { return slices[rank].whole(); })) continue;
    SharedUnit(setting, view, slices, static_cast<int32_t>(unit), ranks, places).Add();
  }
}

}  // namespace

PipelinePlaces PlacesOf(const Setting& setting, const PlanView& view, const std::vector<ModelSlice>& slices) {
  PipelinePlaces places;
  for (int s = 0; s < static_cast<int>(view.stages.size()); ++s) {
    places.groups.push_back(ByNode(setting, view, RanksOf(view, {s})));
  }
  for (const PipelineView& pipeline : view.pipelines) AddTiedGroup(setting, view, pipeline, &places);
  AddUnitGroups(setting, view, &places);
  AddShared(setting, view, slices, &places);
  if (view.pipelines.size() > 1) {
    AddSumGroups(setting, view, &places);
    OrderRings(UnitElements(setting.costs.layout()), &places);
  }
  return places;
}

// Parameters from the first unit on, gradients from the last one on, as they are needed and made.
void OrderRings(const std::vector<int64_t>& elements, PipelinePlaces* places) {
  std::vector<RingTask> rings;
  for (size_t unit = 0; unit < elements.size(); ++unit) rings.push_back({places->sum_group[unit], elements[unit]});
  places->gather_order = RingOrder(rings, places->groups);
  std::reverse(rings.begin(), rings.end());
  places->sum_order = RingOrder(rings, places->groups);
  for (int32_t& unit : places->sum_order) unit = static_cast<int32_t>(rings.size()) - 1 - unit;
}

std::vector<std::vector<int>> HoldersOf(const PlanView& view, const ModelBlocks& blocks, bool tied) {
  std::vector<std::vector<int>> holders(blocks.parts.size());
  for (const PipelineView& pipeline : view.pipelines) {
    for (const Element& element : pipeline.elements) {
      for (const int32_t block : BlocksOf(blocks, element)) holders[block].push_back(element.stage);
      if (tied && element.head) holders[0].push_back(element.stage);
    }
  }
  for (std::vector<int>& stages : holders) {
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  }
  return holders;
}

}  // namespace motley::planner
