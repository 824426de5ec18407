#include <map>
#include <tuple>

#include "planner/graph/group_flows.h"
#include "planner/graph/program_rates.h"

namespace motley::planner {
namespace {

// Classes have parts of blocks, by their plan's shares.
class ClassRates : public ProgramRates {
 public:
  ClassRates(const Setting& setting, const PlanView& view, const ClassPrograms& classes, GraphWriter* writer)
      : ProgramRates(setting, view, classes.programs, view.actors, classes.blocks, writer), stages_of_(classes.stages_of) {}

  int Ring(const RingWork& what) override {
    const int64_t elements = what.elements.whole() ? Elements(what.unit, what.more_units) : what.elements.count;
    const auto [at, added] = rings_.try_emplace({what.group, what.collective, elements}, -1);
    if (added) at->second = writer().AddFlow(FlowOf(what, static_cast<double>(elements)));
    return at->second;
  }

 protected:
  double Owned(size_t c, const RankView& rank, bool stepped, int32_t unit, int32_t more) const override {
    double elements = 0;
    if (unit >= 0) {
      elements = stepped ? Stepped(c, unit, more) : static_cast<double>(Elements(unit, more));
    } else {
      for (const int32_t each : programs()[c].units) elements += Stepped(c, each, 0);
    }
    return OwnedPart(view(), rank) * elements;
  }
  // Programs say of all ranks what is true of one.
  std::optional<OpSet> Again(const ComputeSpan&) const override { return std::nullopt; }

 private:
  Flow FlowOf(const RingWork& what, double elements) const {
    const std::vector<int>& stages = stages_of_[what.group];
    const double bytes = elements * setting().costs.RingBytes(what.collective);
    if (stages.size() == 1) return GroupFlow(setting().links, view(), view().stages[stages[0]], what.collective, bytes);
    if (view().pipelines.size() == 1) {  // two stages of a pipeline meet for nothing else
      const bool backwards = view().stages[stages[1]].embedding;
      return TiedFlow(setting().links, view(), stages[backwards ? 1 : 0], stages[backwards ? 0 : 1], what.collective, bytes);
    }
    const bool stays = what.unit == 0 && setting().workload.model.tie_embeddings;
    const bool whole = what.collective == Collective::kAllReduce || stays;
    const int sharded = what.collective == Collective::kAllGather ? 3 : 2;
    const std::vector<std::vector<int>> sets = SetsOf(view(), stages, whole ? kNeverSharded : sharded);
    return AcrossFlow(setting().links, sets, what.collective, bytes);
  }

  // What a collective of the blocks moves. A tied head's copy of the embedding comes and goes as block 0.
  int64_t Elements(int32_t unit, int32_t more) const {
    int64_t elements = 0;
    for (int32_t u = unit; u <= unit + more; ++u) {
      elements += blocks()[u].Sum([this](UnitKind kind) { return setting().costs.UnitElements(kind); });
    }
    return elements;
  }
  // What is stepped with the blocks: the copy is the head's.
  double Stepped(size_t c, int32_t unit, int32_t more) const {
    const bool copy = view().stages[member(c).stage].tied_copy && blocks()[unit + more].head;
    return static_cast<double>(Elements(unit, more) + (copy ? setting().costs.UnitElements(UnitKind::kEmbedding) : 0));
  }

  const std::vector<std::vector<int>>& stages_of_;
  std::map<std::tuple<int32_t, Collective, int64_t>, int> rings_;  // by group and elements
};

}  // namespace

std::unique_ptr<ProgramRates> RatesOfClasses(const Setting& setting, const PlanView& view, const ClassPrograms& classes,
                                             GraphWriter* writer) {
  return std::make_unique<ClassRates>(setting, view, classes, writer);
}

}  // namespace motley::planner
