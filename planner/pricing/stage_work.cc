#include "planner/pricing/stage_work.h"

namespace motley::planner {

StageWork WorkOf(const PlanView& view, int stage, bool tied) {
  const StageView& s = view.stages[stage];
  const std::vector<Element>& elements = view.pipelines[s.pipeline].elements;
  StageWork work;
  work.gathers = s.state.layered() && s.state.Gathers();
  const bool by_unit = s.state.GathersByUnit();
  work.keeps_embedding = by_unit && tied && s.embedding && s.head;
  for (size_t e = 0; e < elements.size(); ++e) {
    const Element& element = elements[e];
    if (element.stage != stage) continue;
    const size_t begin = work.chunks.size();
    const int index = static_cast<int>(e);
    if (by_unit) {
      if (element.embedding) work.chunks.push_back({{true, element.first_layer, 0, false}, index});
      for (int64_t l = 0; l < element.layers; ++l) work.chunks.push_back({{false, element.first_layer + l, 1, false}, index});
      if (element.head) work.chunks.push_back({{false, element.first_layer + element.layers, 0, true}, index});
    } else {
      work.chunks.push_back({element, index});
    }
    work.chunks[begin].first = true;
    work.chunks.back().last = true;
  }
  return work;
}

}  // namespace motley::planner
