#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "planner/graph/class_flows.h"
#include "planner/graph/class_seconds.h"
#include "planner/graph/program_rates.h"
#include "planner/lowering/model_blocks.h"

namespace motley::planner {
namespace {

class ClassRates : public ProgramRates {
 public:
  ClassRates(const Setting& setting, const PlanView& view, const ClassPrograms& classes, GraphWriter* writer)
      : setting_(setting),
        view_(view),
        classes_(classes),
        writer_(*writer),
        flows_(setting, view, writer),
        seconds_(setting, view) {}

  Actor ActorOf(size_t c) const override {
    const ActorView& actor = view_.actors[c];
    const StageView& stage = view_.stages[actor.stage];
    const RankView& first = view_.ranks[actor.first_rank];
    const int ranks = static_cast<int>(actor.units()) * actor.ranks_per_unit;
    std::string name = first.plan->device.value();
    if (ranks > 1) absl::StrAppend(&name, " and ", ranks - 1, " like it");
    return {std::move(name), stage.pipeline, stage.index, ranks, first.device, UnitText(view_, first)};
  }

  // ---- compute ----

  double Seconds(size_t c, const ComputeSpan& what) override {
    double seconds = 0;
    for (int32_t m = what.microbatch; m <= what.microbatch + what.more_microbatches; ++m) {
      const PassSeconds pass = seconds_.Of(static_cast<int>(c), SizeOf(c, m));
      for (int32_t u = what.unit; u <= what.unit + what.more_units; ++u) seconds += Of(pass, what.work.pass, classes_.blocks[u]);
    }
    return seconds;
  }
  // Microbatches of one size one after another as one.
  InnerSums SumsInside(std::span<const RankInstruction> members, const ComputeSpan& what) override {
    const size_t c = members.front().rank;
    InnerSums result;
    if (view_.actors[c].ranks_per_unit == 1) return result;
    const PassReductions reductions = seconds_.ReductionsOf(static_cast<int>(c));
    double times = 0;
    for (int32_t u = what.unit; u <= what.unit + what.more_units; ++u) {
      times += Of(reductions, what.work.pass, classes_.blocks[u]);
    }
    const int32_t end = what.microbatch + what.more_microbatches + 1;
    for (int32_t m = what.microbatch, next = m; m < end && times > 0; m = next) {
      while (next < end && SizeOf(c, next) == SizeOf(c, m)) ++next;
      const int flow = flows_.TensorParallel(static_cast<int>(c), SizeOf(c, m));
      result.push_back({flow, times * (next - m), end - what.microbatch == 1 ? m : -1});
    }
    return result;
  }
  double OptimizerSeconds(size_t c, const OptimizerStep& op) override {
    if (op.first_unit >= 0) return seconds_.OptimizerSeconds(static_cast<int>(c), Stepped(c, op.first_unit, op.more_units));
    double elements = 0;
    for (const int32_t unit : classes_.programs[c].units) elements += Stepped(c, unit, 0);
    return seconds_.OptimizerSeconds(static_cast<int>(c), elements);
  }

  // ---- collectives ----

  int Ring(const RingWork& what) override {
    const std::vector<int>& stages = classes_.stages_of[what.group];
    const int64_t elements = what.elements.whole() ? Elements(what.unit, what.more_units) : what.elements.count;
    if (stages.size() == 1) return flows_.Group(stages[0], what.collective, elements);
    const auto [at, added] = across_.try_emplace({what.group, static_cast<int>(what.collective), elements}, -1);
    if (!added) return at->second;
    const double bytes = static_cast<double>(elements) * setting_.costs.RingBytes(what.collective);
    if (view_.pipelines.size() == 1) {  // two stages of a pipeline meet for nothing else
      const bool backwards = view_.stages[stages[1]].embedding;
      return at->second = writer_.AddFlow(
                 TiedFlow(setting_, view_, stages[backwards ? 1 : 0], stages[backwards ? 0 : 1], what.collective, bytes));
    }
    const std::vector<std::vector<int>> sets = SetsByNode(what);
    return at->second = writer_.AddFlow(AcrossFlow(setting_.links, sets, what.collective, bytes));
  }
  int Scalars() override {
    std::vector<int> devices;
    for (const RankView& rank : view_.ranks) devices.push_back(rank.device);
    return writer_.AddFlow({setting_.links.TreeSeconds(devices), {}});
  }
  // The sums of a tensor-parallel unit are inside what it computes; what passes on inside it is not counted.
  int Exchange(std::span<const RankInstruction>, const AllReduceActivation&) override { return writer_.AddFlow({}); }
  int Exchange(std::span<const RankInstruction>, const BroadcastActivation&) override { return writer_.AddFlow({}); }

  // ---- hand-overs and copies ----

  // What the units of either side have in common, all at once. Units send from and receive at their first rank.
  int HandOver(const HandOverPiece& piece) override {
    const ActorView &source = view_.actors[piece.from], &target = view_.actors[piece.to];
    const int64_t size = SizeOf(piece.from, piece.from_microbatch), their_size = SizeOf(piece.to, piece.to_microbatch);
    const int64_t begin = piece.first - First(piece.from, piece.from_microbatch);
    const int64_t ahead = piece.first - First(piece.to, piece.to_microbatch);
    const auto [at, added] = hand_overs_.try_emplace(
        {static_cast<int64_t>(piece.from), static_cast<int64_t>(piece.to), size, their_size, begin, ahead, piece.samples}, -1);
    if (!added) return at->second;
    std::vector<Flow> flows;
    for (int64_t done = 0, next = 0; done < piece.samples; done = next) {
      const int64_t i = (begin + done) / size, j = (ahead + done) / their_size;
      next = std::min({piece.samples, (i + 1) * size - begin, (j + 1) * their_size - ahead});
      const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(next - done)));
      const int from = view_.ranks[source.unit_ranks[i]].device, to = view_.ranks[target.unit_ranks[j]].device;
      flows.push_back(setting_.links.PointToPoint(from, to, bytes));
    }
    return at->second = writer_.AddFlow(Links::Together(flows));
  }
  UnitRange UnitsWith(size_t c, int32_t microbatch, int64_t first, int64_t samples) const override {
    const int64_t units = view_.actors[c].units();
    if (units == 1) return {};
    const int64_t size = SizeOf(c, microbatch), begin = first - First(c, microbatch);
    return {begin / size, (begin + samples - 1) / size + 1, units};
  }

  int Copy(size_t c, const OffloadActivation& op) override { return flows_.ToHost(static_cast<int>(c), InputBytes(c, op)); }
  int Copy(size_t c, const PrefetchActivation& op) override { return flows_.FromHost(static_cast<int>(c), InputBytes(c, op)); }
  int Copy(size_t c, const OffloadState& op) override { return flows_.ToHost(static_cast<int>(c), StateBytes(c, op)); }
  // Where pipelines share what they step, a stage still needs all of its parameters.
  int Copy(size_t c, const PrefetchState& op) override {
    const bool parts = view_.pipelines_zero_stage > 0 && op.of == State::kParameters;
    const double pipelines = parts ? static_cast<double>(view_.pipelines.size()) : 1;
    return flows_.FromHost(static_cast<int>(c), pipelines * StateBytes(c, op));
  }

 private:
  // Of one unit, as all are alike.
  int64_t SizeOf(size_t c, int32_t m) const { return classes_.programs[c].microbatches[m].samples / view_.actors[c].units(); }
  int64_t First(size_t c, int32_t m) const { return classes_.programs[c].microbatches[m].first; }

  static double Of(const PassSeconds& seconds, TaskKind pass, const Part& part) {
    return pass == TaskKind::kForward         ? seconds.Forward(part)
           : pass == TaskKind::kRecompute     ? seconds.Recompute(part)
           : pass == TaskKind::kBackwardInput ? seconds.BackwardInput(part)
           : pass == TaskKind::kBackward      ? seconds.Backward(part)
                                              : seconds.BackwardWeight(part);
  }
  static double Of(const PassReductions& sums, TaskKind pass, const Part& part) {
    return pass == TaskKind::kForward          ? sums.Forward(part)
           : pass == TaskKind::kRecompute      ? sums.Recompute(part)
           : pass == TaskKind::kBackwardWeight ? 0
                                               : sums.Backward(part);
  }

  // The devices of each set of ranks that has the block once: of each unit of the stages, or of all that keep shards of it. Sets
  // of a node together.
  std::vector<std::vector<int>> SetsByNode(const RingWork& what) const {
    std::vector<std::vector<int>> units;
    const bool stays = what.unit == 0 && setting_.workload.model.tie_embeddings;
    const bool shards = what.collective != Collective::kAllReduce && !stays;
    for (const int stage : classes_.stages_of[what.group]) {
      if (shards && ZeroAsRun(view_, view_.stages[stage]) >= (what.collective == Collective::kAllGather ? 3 : 2)) {
        units.push_back(DevicesOf(view_, view_.stages[stage]));
        continue;
      }
      for (const int a : view_.stages[stage].actors) {
        const ActorView& actor = view_.actors[a];
        for (const int first : actor.unit_ranks) {
          std::vector<int>& unit = units.emplace_back();
          for (int r = 0; r < actor.ranks_per_unit; ++r) unit.push_back(view_.ranks[first + r].device);
        }
      }
    }
    std::stable_sort(units.begin(), units.end(), [this](const auto& a, const auto& b) {
      return setting_.cluster.devices[a.front()].node < setting_.cluster.devices[b.front()].node;
    });
    return units;
  }

  // What a collective of the blocks moves. A tied head's copy of the embedding comes and goes as block 0.
  int64_t Elements(int32_t unit, int32_t more) const {
    const Costs& costs = setting_.costs;
    int64_t elements = 0;
    for (int32_t u = unit; u <= unit + more; ++u) {
      const Part& part = classes_.blocks[u];
      elements += part.layers * costs.UnitElements(UnitKind::kLayer);
      if (part.embedding) elements += costs.UnitElements(UnitKind::kEmbedding);
      if (part.head) elements += costs.UnitElements(UnitKind::kHead);
    }
    return elements;
  }
  // What is stepped with the blocks: the copy is the head's.
  double Stepped(size_t c, int32_t unit, int32_t more) const {
    const bool copy = view_.stages[view_.actors[c].stage].tied_copy && classes_.blocks[unit + more].head;
    return static_cast<double>(Elements(unit, more) + (copy ? setting_.costs.UnitElements(UnitKind::kEmbedding) : 0));
  }
  // Of each rank, as much as of the unit's fullest.
  template <typename Op>
  double StateBytes(size_t c, const Op& op) const {
    const ActorView& actor = view_.actors[c];
    double part = 0;
    for (int r = 0; r < actor.ranks_per_unit; ++r) part = std::max(part, OwnedPart(view_, view_.ranks[actor.first_rank + r]));
    const Costs& costs = setting_.costs;
    if (op.of == State::kMoments) {
      return part * Stepped(c, op.unit, op.more_units) * static_cast<double>(costs.optimizer_bytes_per_element());
    }
    return part * static_cast<double>(Elements(op.unit, op.more_units) * costs.element_bytes());
  }
  template <typename Op>
  double InputBytes(size_t c, const Op& op) const {
    int64_t layers = 0, samples = 0;
    for (int32_t u = op.unit; u <= op.unit + op.more_units; ++u) layers += classes_.blocks[u].layers;
    for (int32_t m = op.microbatch; m <= op.microbatch + op.more_microbatches; ++m) samples += SizeOf(c, m);
    return static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(samples * layers)));
  }

  const Setting& setting_;
  const PlanView& view_;
  const ClassPrograms& classes_;
  GraphWriter& writer_;
  ClassFlows flows_;
  SecondsTable seconds_;
  std::map<std::tuple<int32_t, int, int64_t>, int> across_;      // by group, collective and elements
  absl::flat_hash_map<std::array<int64_t, 7>, int> hand_overs_;  // by classes, sizes, first samples in both and samples
};

}  // namespace

std::unique_ptr<ProgramRates> RatesOfClasses(const Setting& setting, const PlanView& view, const ClassPrograms& classes,
                                             GraphWriter* writer) {
  return std::make_unique<ClassRates>(setting, view, classes, writer);
}

}  // namespace motley::planner
