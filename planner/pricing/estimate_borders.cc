#include "planner/pricing/estimate_borders.h"

#include <utility>

namespace motley::planner {
namespace {

// A unit's part of its pipeline's batch.
struct BorderPart {
  int device = 0;  // of its first rank, which sends and receives
  int64_t begin = 0, end = 0;
};

std::vector<BorderPart> PartsOf(const PlanView& view, const StageView& stage) {
  std::vector<BorderPart> parts;
  for (const int a : stage.actors) {
    const ActorView& actor = view.actors[a];
    int64_t batch = 0;
    for (const int64_t m : *actor.microbatches) batch += m;
    if (batch == 0) continue;
    for (const int rank : actor.unit_ranks) {
      const int64_t begin = parts.empty() ? 0 : parts.back().end;
      parts.push_back({view.ranks[rank].device, begin, begin + batch});
    }
  }
  return parts;
}

class BorderLoads {
 public:
  BorderLoads(const Setting& setting, const PlanView& view)
      : setting_(setting), view_(view), loads_(static_cast<size_t>(setting.links.num_resources()), 0) {}

  Borders Sum() {
    for (const PipelineView& pipeline : view_.pipelines) AddPipeline(pipeline);
    for (size_t r = 0; r < loads_.size(); ++r) {
      if (loads_[r] > 0)
        borders_.fullest_seconds = std::max(borders_.fullest_seconds, loads_[r] / setting_.links.Capacity(static_cast<int>(r)));
    }
    return std::move(borders_);
  }

 private:
  void AddPipeline(const PipelineView& pipeline) {
    std::vector<Border>& behind = borders_.behind.emplace_back(pipeline.elements.size());
    if (pipeline.num_stages < 2) return;
    std::vector<std::vector<BorderPart>> parts;
    for (int s = 0; s < pipeline.num_stages; ++s) {
      parts.push_back(PartsOf(view_, view_.stages[pipeline.first_stage + s]));
    }
    const auto at = [&](const Element& element) -> const std::vector<BorderPart>& {
      return parts[element.stage - pipeline.first_stage];
    };
    for (size_t e = 0; e + 1 < pipeline.elements.size(); ++e) {
      const Element &from = pipeline.elements[e], &to = pipeline.elements[e + 1];
      if (from.stage != to.stage) behind[e] = Add(at(from), at(to));
    }
  }

  // Forward one way, the gradients the other.
  Border Add(const std::vector<BorderPart>& from, const std::vector<BorderPart>& to) {
    std::vector<Flow> flows;
    for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
      const int64_t samples = std::min(from[i].end, to[j].end) - std::max(from[i].begin, to[j].begin);
      const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(samples)));
      if (samples > 0) {
        flows.push_back(setting_.links.PointToPoint(from[i].device, to[j].device, bytes));
        Load(flows.back());
        Load(setting_.links.PointToPoint(to[j].device, from[i].device, bytes));
      }
      ++(from[i].end <= to[j].end ? i : j);
    }
    const Flow together = Links::Together(flows);
    return {setting_.links.SecondsAlone(together) - together.latency_seconds, together.latency_seconds};
  }

  void Load(const Flow& flow) {
    for (const LinkLoad& load : flow.loads) loads_[load.resource] += load.bytes;
  }

  const Setting& setting_;
  const PlanView& view_;
  std::vector<double> loads_;  // bytes by resource
  Borders borders_;
};

}  // namespace

Borders BordersOf(const Setting& setting, const PlanView& view) { return BorderLoads(setting, view).Sum(); }

}  // namespace motley::planner
