#include "planner/search/plan_classes.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

bool UnitsAlike(const UnitPlan& a, const UnitPlan& b) {
  return a.microbatches == b.microbatches &&
         std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(), [](const RankPlan& x, const RankPlan& y) {
           return x.device_model == y.device_model && x.tp_share == y.tp_share && x.recompute == y.recompute;
         });
}

bool RangesAlike(const LayerRange& a, const LayerRange& b) { return a.first == b.first && a.last == b.last; }

bool PipelinesAlike(const PipelinePlan& a, const PipelinePlan& b) {
  return std::equal(
      a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(), [](const StagePlan& x, const StagePlan& y) {
        return std::equal(x.ministages.begin(), x.ministages.end(), y.ministages.begin(), y.ministages.end(), RangesAlike) &&
               std::equal(x.units.begin(), x.units.end(), y.units.begin(), y.units.end(), UnitsAlike);
      });
}

}  // namespace

std::vector<PipelineClass> PipelineClassesOf(const Plan& plan) {
  std::vector<PipelineClass> classes;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const PipelineClass& c) {
      return PipelinesAlike(plan.pipelines[c.pipelines[0]], plan.pipelines[p]);
    });
    if (same != classes.end()) {
      same->pipelines.push_back(p);
    } else {
      classes.push_back({{p}});
    }
  }
  return classes;
}

std::vector<UnitClass> UnitClassesOf(const Plan& plan) {
  std::vector<UnitClass> classes;
  for (const PipelineClass& shape : PipelineClassesOf(plan)) {
    for (size_t s = 0; s < plan.pipelines[shape.pipelines[0]].stages.size(); ++s) {
      const auto first = static_cast<std::ptrdiff_t>(classes.size());
      for (const size_t p : shape.pipelines) {
        const std::vector<UnitPlan>& units = plan.pipelines[p].stages[s].units;
        for (size_t u = 0; u < units.size(); ++u) {
          const auto same = std::find_if(classes.begin() + first, classes.end(),
                                         [&](const UnitClass& c) { return UnitsAlike(FirstUnit(c, plan), units[u]); });
          if (same != classes.end()) {
            same->places.emplace_back(p, u);
          } else {
            classes.push_back({{{p, u}}, s});
          }
        }
      }
    }
  }
  return classes;
}

std::string Place(const UnitClass& units, const Plan& plan) {
  const UnitPlan& first = FirstUnit(units, plan);
  std::string where = absl::StrCat(units.places.size(), " x ", first.ranks.empty() ? "?" : first.ranks[0].device_model);
  if (units.places[0].first > 0) absl::StrAppend(&where, " of pipeline ", units.places[0].first);
  return absl::StrCat(where, " in stage ", units.stage);
}

}  // namespace motley::planner
