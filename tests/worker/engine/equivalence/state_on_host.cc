#include "tests/worker/engine/equivalence/state_on_host.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/engine/host_tier.h"

namespace motley::engine {
namespace {

constexpr int32_t kStateSlots = 2;

class Writer {
 public:
  Writer(const Program& program, const StateOnHost& how) : from_(program), how_(how), to_(program) {
    to_.offloads = program.offloads.Or(how.kinds);
    if (program.kind != ProgramKind::kTraining) to_.offloads = OffloadKinds{.parameters = how.kinds.parameters};
    first_slot_ = static_cast<int32_t>(program.slots.size());
    if (how.kinds.parameters) NoHomes(to_.parameter_buffers);
    if (how.kinds.gradients || FromBuffers()) NoHomes(to_.gradient_buffers);
    to_.instructions.clear();
  }

  // `state_bytes`: of the largest unit's.
  Program Write(int64_t state_bytes) {
    for (const Instruction& instruction : from_.instructions) {
      if (const auto* sum = std::get_if<ReduceScatter>(&instruction.op)) ++sums_of_[sum->unit];
    }
    for (const Instruction& instruction : from_.instructions) {
      needs_.clear();
      for (const int32_t before : instruction.after) needs_.insert(now_at_[static_cast<size_t>(before)]);
      std::visit([this](const auto& op) { Visit(op); }, instruction.op);
      now_at_.push_back(Last());
    }
    if (steps_ > 0 && StateWaits()) to_.slots.resize(from_.slots.size() + kStateSlots, std::max<int64_t>(1, state_bytes));
    return std::move(to_);
  }

 private:
  static void NoHomes(std::vector<UnitBuffer>& buffers) {
    for (UnitBuffer& buffer : buffers) buffer.home_of = buffer.IsShard() ? buffer.home_of : -1;
  }
  bool FromBuffers() const { return how_.in_turn && how_.from_buffers && !how_.kinds.gradients; }
  bool StateWaits() const { return how_.kinds.takes_state(); }
  int32_t Last() const { return static_cast<int32_t>(to_.instructions.size()) - 1; }

  void Add(Operation op, std::set<int32_t> needs) {
    needs.erase(-1);
    const Lane lane = LaneOf(op);
    std::erase_if(needs, [&](int32_t at) { return LaneOf(to_.instructions[static_cast<size_t>(at)].op) == lane; });
    to_.instructions.push_back({std::move(op), {needs.begin(), needs.end()}});
  }
  void AddAsIs(Operation op) { Add(std::move(op), needs_); }

  template <typename Op>
  void Visit(const Op& op) {
    if constexpr (requires { op.grad; }) NeedsEmpty(op.grad);
    if constexpr (requires { op.tied_grad; }) NeedsEmpty(op.tied_grad);
    AddAsIs(op);
    if constexpr (std::is_same_v<Op, Release>) released_[op.buffer] = Last();
  }
  void NeedsEmpty(int32_t buffer) {
    if (const auto left = left_.find(buffer); left != left_.end()) needs_.insert(left->second);
  }

  // The first of a unit's, which may come in ranges.
  void Visit(const Gather& op) {
    if (!how_.kinds.parameters) return AddAsIs(op);
    const int32_t free_since = released_.contains(op.buffer) ? released_[op.buffer] : -1;
    Fetched& fetched = fetched_[op.buffer];
    if (fetched.unit != op.unit || fetched.since != free_since) {
      Add(PrefetchParameters{op.unit, op.buffer}, {free_since});
      fetched = {op.unit, free_since, Last()};
    }
    needs_.insert(fetched.at);
    AddAsIs(op);
  }

  void Visit(const ReduceScatter& op) {
    AddAsIs(op);
    if (--sums_of_[op.unit] > 0) return;
    const int32_t sum = Last();
    if (how_.kinds.gradients) {
      Add(OffloadGradients{op.unit, op.grad}, {sum});
      left_[op.grad] = Last();
    }
    if (!how_.in_turn) return;
    const int32_t slot = NextSlot();
    std::set<int32_t> needs = {sum};
    if (StateWaits()) {
      Add(PrefetchOptimizer{op.unit, slot}, {});
      needs.insert(Last());
    }
    Add(OptimizerStep{op.unit, 0, slot, FromBuffers() ? op.grad : -1}, needs);
    Back(op.unit, slot, Last());
  }

  // One unit comes while the one before it is stepped.
  void Visit(const OptimizerStep& op) {
    if (how_.in_turn) return;
    if (!StateWaits()) return AddAsIs(op);
    std::vector<std::pair<int32_t, int32_t>> slots;  // and where they were filled, by unit
    for (size_t i = 0; i <= from_.units.size(); ++i) {
      if (i < from_.units.size()) {
        slots.emplace_back(NextSlot(), 0);
        Add(PrefetchOptimizer{from_.units[i], slots.back().first}, {});
        slots.back().second = Last();
      }
      if (i == 0) continue;
      std::set<int32_t> needs = needs_;
      needs.insert(slots[i - 1].second);
      Add(OptimizerStep{from_.units[i - 1], 0, slots[i - 1].first}, needs);
      Back(from_.units[i - 1], slots[i - 1].first, Last());
    }
  }

  int32_t NextSlot() { return StateWaits() ? first_slot_ + steps_++ % kStateSlots : -1; }
  void Back(int32_t unit, int32_t slot, int32_t step) {
    if (StateWaits()) Add(OffloadOptimizer{unit, slot}, {step});
  }

  struct Fetched {
    int32_t unit = -1, since = -1;  // the release before
    int32_t at = -1;
  };

  const Program& from_;
  const StateOnHost how_;
  Program to_;
  int32_t first_slot_ = 0, steps_ = 0;
  std::set<int32_t> needs_;              // of the present instruction
  std::vector<int32_t> now_at_;          // by instruction of the first program
  std::map<int32_t, int> sums_of_;       // by unit: to come
  std::map<int32_t, int32_t> released_;  // by parameter buffer
  std::map<int32_t, int32_t> left_;      // by gradient buffer: when its sum left
  std::map<int32_t, Fetched> fetched_;   // by parameter buffer
};

bool KeepsShards(const Program& program) {
  const auto is_shard = [](const UnitBuffer& buffer) { return buffer.IsShard(); };
  return std::any_of(program.parameter_buffers.begin(), program.parameter_buffers.end(), is_shard) ||
         std::any_of(program.gradient_buffers.begin(), program.gradient_buffers.end(), is_shard);
}

}  // namespace

absl::StatusOr<RankAssignment> WithStateOnHost(RankAssignment assignment, const StateOnHost& how) {
  if (KeepsShards(assignment.program)) return absl::FailedPreconditionError("the rank keeps shards among groups");
  MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(assignment.config.training));
  const Program training = assignment.program, evaluation = assignment.evaluation;
  assignment.program.offloads = training.offloads.Or(how.kinds);
  int64_t largest = 0;
  const HostAreas areas(assignment, precision);
  for (const int32_t unit : training.units) largest = std::max(largest, areas.LayoutOf(unit).AreaBytes());
  assignment.program = Writer(training, how).Write(largest);
  MOTLEY_RETURN_IF_ERROR(Validate(assignment.program));
  if (!evaluation.instructions.empty()) {
    assignment.evaluation = Writer(evaluation, how).Write(0);
    MOTLEY_RETURN_IF_ERROR(Validate(assignment.evaluation));
  }
  assignment.planned_host_bytes = HostBytesFor(assignment, precision);
  return assignment;
}

}  // namespace motley::engine
