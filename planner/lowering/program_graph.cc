#include "planner/lowering/program_graph.h"

#include <map>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "planner/lowering/program_memory.h"
#include "planner/lowering/program_walk.h"
#include "planner/lowering/step_lowering_graph.h"
#include "planner/lowering/step_lowering_seconds.h"
#include "planner/lowering/step_lowering_view.h"

namespace motley::planner {
namespace {

class Graph : public WalkListener {
 public:
  Graph(const Setting& setting, const PlanView& view, const std::vector<Program>& programs,
        const std::vector<UnitPlacement>& placement)
      : setting_(setting), view_(view), programs_(programs), placement_(placement), writer_(setting.links) {
    for (const RankView& rank : view.ranks) {
      const StageView& stage = view.stages[rank.stage];
      writer_.AddActor({rank.plan->device.value(), stage.pipeline, stage.index, 1, rank.device});
    }
    size_t instructions = 0;
    for (const Program& program : programs) {
      ends_.emplace_back(program.instructions.size());
      task_of_.emplace_back(program.instructions.size(), -1);
      instructions += program.instructions.size();
    }
    last_compute_.assign(programs.size(), -1);
    writer_.Expect(instructions);
  }

  ProgramGraph Finish() { return {writer_.Finish(), std::move(task_of_)}; }

  void Ran(size_t r, int32_t i) override {
    const Operation& op = At(r, i).op;
    std::visit([&](const auto& o) { Compute(r, i, o); }, op);
  }

  void Met(const std::vector<RankInstruction>& members) override {
    const Operation& op = At(members.front().rank, members.front().instruction).op;
    IndexList after, lanes;
    std::vector<int> devices;
    for (const auto& [rank, instruction] : members) {
      AddWaits(rank, instruction, &after);
      lanes.push_back(GraphWriter::Lane(static_cast<int>(rank), LaneKind::kCollective));
      devices.push_back(view_.ranks[rank].device);
    }
    int32_t task = -1;
    if (const auto* gather = std::get_if<Gather>(&op)) {
      const int flow = RingFlow(Collective::kAllGather, gather->group, gather->unit, devices);
      task = writer_.AddTransfer(TaskKind::kGather, std::move(lanes), flow, 1, 1, std::move(after), {gather->unit, -1});
    } else if (const auto* reduce = std::get_if<ReduceScatter>(&op)) {
      const int flow = RingFlow(Collective::kReduceScatter, reduce->group, reduce->unit, devices);
      task = writer_.AddTransfer(TaskKind::kReduceScatter, std::move(lanes), flow, 1, 1, std::move(after), {reduce->unit, -1});
    } else {
      const int flow = writer_.AddFlow({setting_.links.TreeSeconds(devices), {}});
      task = writer_.AddTransfer(TaskKind::kScalars, std::move(lanes), flow, 1, 1, std::move(after));
    }
    for (const RankInstruction& member : members) IsTask(member, task);
  }

  void HandedOver(RankInstruction send, RankInstruction receive) override {
    const Operation& op = At(send.rank, send.instruction).op;
    const auto* activation = std::get_if<SendActivation>(&op);
    const auto* gradient = std::get_if<SendGradient>(&op);
    const int32_t samples = activation != nullptr ? activation->samples : gradient->samples;
    const int32_t unit = activation != nullptr ? activation->unit : gradient->unit;
    const int32_t microbatch = activation != nullptr ? activation->microbatch : gradient->microbatch;
    IndexList after;
    AddWaits(send.rank, send.instruction, &after);
    AddWaits(receive.rank, receive.instruction, &after);
    IndexList lanes = {GraphWriter::Lane(static_cast<int>(send.rank), LaneKind::kSendLane),
                       GraphWriter::Lane(static_cast<int>(receive.rank), LaneKind::kReceiveLane)};
    const int32_t task = writer_.AddTransfer(TaskKind::kSend, std::move(lanes), HandOverFlow(send.rank, receive.rank, samples), 1,
                                             1, std::move(after), {unit, microbatch});
    IsTask(send, task);
    IsTask(receive, task);
  }

 private:
  void IsTask(const RankInstruction& at, int32_t task) {
    ends_[at.rank][at.instruction] = {task};
    task_of_[at.rank][at.instruction] = task;
  }

  const Instruction& At(size_t rank, int32_t index) const { return programs_[rank].instructions[index]; }

  // Of the device's seconds for one microbatch in one unit.
  void Compute(size_t r, int32_t i, const Forward& op) { AddUnit(r, i, TaskKind::kForward, op.unit, op.microbatch); }
  void Compute(size_t r, int32_t i, const Recompute& op) { AddUnit(r, i, TaskKind::kRecompute, op.unit, op.microbatch); }
  void Compute(size_t r, int32_t i, const Backward& op) { AddUnit(r, i, TaskKind::kBackward, op.unit, op.microbatch); }
  void Compute(size_t r, int32_t i, const OptimizerStep&) {
    int64_t owned = 0;
    for (const UnitPlacement& unit : placement_) owned += unit.bounds[r + 1] - unit.bounds[r];
    Add(r, i, TaskKind::kOptimizer, setting_.costs.OptimizerSeconds(view_.ranks[r].kind, static_cast<double>(owned)), {});
  }
  // What takes no time: over when what it waits for is.
  void Compute(size_t r, int32_t i, const Release&) { Nothing(r, i); }
  void Compute(size_t r, int32_t i, const ZeroGrad&) { Nothing(r, i); }
  template <typename Op>
  void Compute(size_t, int32_t, const Op&) {
    static_assert(Op::kTraits.lane != Lane::kCompute, "an operation of the compute lane has no seconds");
  }

  void AddUnit(size_t r, int32_t i, TaskKind kind, int32_t unit, int32_t microbatch) {
    const UnitKind unit_kind = UnitKindOf(programs_[r], unit);
    const int device_kind = view_.ranks[r].kind;
    const auto samples = static_cast<double>(programs_[r].microbatches[microbatch].samples);
    const Costs& costs = setting_.costs;
    const double seconds = kind == TaskKind::kBackward    ? costs.BackwardSeconds(device_kind, unit_kind, samples)
                           : kind == TaskKind::kRecompute ? costs.RecomputeSeconds(device_kind, unit_kind, OpSet::All(), samples)
                                                          : costs.ForwardSeconds(device_kind, unit_kind, samples);
    Add(r, i, kind, seconds, {unit, microbatch});
  }
  void Add(size_t r, int32_t i, TaskKind kind, double seconds, TaskTag tag) {
    IndexList after;
    AddWaits(r, i, &after);
    last_compute_[r] = writer_.AddCompute(kind, static_cast<int>(r), seconds, std::move(after), tag);
    IsTask({r, i}, last_compute_[r]);
  }
  void Nothing(size_t r, int32_t i) {
    AddWaits(r, i, &ends_[r][i]);
    ends_[r][i].push_back(last_compute_[r]);
  }

  void AddWaits(size_t rank, int32_t instruction, IndexList* after) const {
    for (const int32_t a : At(rank, instruction).after) {
      after->insert(after->end(), ends_[rank][a].begin(), ends_[rank][a].end());
    }
  }

  int RingFlow(Collective collective, int32_t group, int32_t unit, const std::vector<int>& devices) {
    const auto [at, added] = rings_.try_emplace({collective, group, unit}, -1);
    if (!added) return at->second;
    const std::vector<int64_t>& bounds = placement_[unit].bounds;
    const auto whole = static_cast<double>(bounds.back());
    std::vector<double> shares;
    for (const int32_t member : programs_[0].groups[group]) {
      shares.push_back(static_cast<double>(bounds[member + 1] - bounds[member]) / whole);
    }
    const double bytes = whole * setting_.costs.RingBytes(collective);
    return at->second = writer_.AddFlow(setting_.links.Ring(collective, devices, bytes, shares));
  }
  int HandOverFlow(size_t from, size_t to, int32_t samples) {
    const auto [at, added] = hand_overs_.try_emplace({from, to, samples}, -1);
    if (!added) return at->second;
    const auto bytes = static_cast<double>(setting_.costs.BoundaryBytes(static_cast<double>(samples)));
    return at->second = writer_.AddFlow(setting_.links.PointToPoint(view_.ranks[from].device, view_.ranks[to].device, bytes));
  }

  const Setting& setting_;
  const PlanView& view_;
  const std::vector<Program>& programs_;
  const std::vector<UnitPlacement>& placement_;
  GraphWriter writer_;
  std::vector<std::vector<IndexList>> ends_;  // by rank and instruction: the tasks after which it is over
  std::vector<std::vector<int32_t>> task_of_;
  std::vector<int32_t> last_compute_;                              // by rank
  std::map<std::tuple<Collective, int32_t, int32_t>, int> rings_;  // by group and unit
  std::map<std::tuple<size_t, size_t, int32_t>, int> hand_overs_;  // by ranks and samples
};

}  // namespace

absl::StatusOr<ProgramGraph> GraphOfPrograms(const Setting& setting, const Plan& plan, const std::vector<Program>& programs,
                                             const std::vector<UnitPlacement>& placement) {
  MOTLEY_ASSIGN_OR_RETURN(const PlanView view, ViewOf(setting, plan, {.merge = false, .assign_samples = false}));
  Graph graph(setting, view, programs, placement);
  MOTLEY_RETURN_IF_ERROR(WalkPrograms(programs, &graph));
  return graph.Finish();
}

}  // namespace motley::planner
