#include "common/program/engine_subset.h"

#include <string_view>

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

// What of an operation's fields the engine has no code for; empty: nothing.
template <typename Op>
std::string_view RefusedField(const Op& op) {
  if constexpr (requires { op.more_units; }) {
    if (op.more_units != 0) return "a range of units";
  }
  if constexpr (requires { op.more_microbatches; }) {
    if (op.more_microbatches != 0) return "a range of microbatches";
  }
  if constexpr (requires { op.tp_group; }) {
    if (op.tp_group != -1) return "a tensor-parallel group";
  }
  return "";
}

// Of a backward: the head makes its logits again and needs nothing that the group would have to exchange.
template <typename Op>
std::string_view RefusedBackward(const Op& op) {
  if (op.segment == UnitSegment::kLogits || op.segment == UnitSegment::kLoss) return "a segment of the head";
  return RefusedField(op);
}

constexpr std::string_view kOperation = "the operation";

// What of an instruction the engine has no code for; empty: it runs it.
std::string_view RefusedBy(const Gather& op) { return RefusedField(op); }
std::string_view RefusedBy(const Release&) { return ""; }
std::string_view RefusedBy(const Forward& op) { return RefusedField(op); }
std::string_view RefusedBy(const Recompute& op) {
  return op.segment != UnitSegment::kWhole ? "a segment of a unit" : RefusedField(op);
}
std::string_view RefusedBy(const Backward& op) { return RefusedBackward(op); }
std::string_view RefusedBy(const BackwardInput& op) { return RefusedBackward(op); }
std::string_view RefusedBy(const BackwardWeight& op) { return RefusedBackward(op); }
std::string_view RefusedBy(const ZeroGrad& op) { return RefusedField(op); }
std::string_view RefusedBy(const ReduceScatter& op) { return RefusedField(op); }
std::string_view RefusedBy(const AllReduceActivation&) { return ""; }
std::string_view RefusedBy(const BroadcastActivation&) { return ""; }
std::string_view RefusedBy(const SendActivation&) { return ""; }
std::string_view RefusedBy(const ReceiveActivation&) { return ""; }
std::string_view RefusedBy(const SendGradient&) { return ""; }
std::string_view RefusedBy(const ReceiveGradient&) { return ""; }
std::string_view RefusedBy(const OffloadActivation& op) { return RefusedField(op); }
std::string_view RefusedBy(const PrefetchActivation& op) { return RefusedField(op); }
std::string_view RefusedBy(const ReduceScalars&) { return ""; }
std::string_view RefusedBy(const OptimizerStep& op) { return RefusedField(op); }
std::string_view RefusedBy(const Broadcast&) { return kOperation; }
std::string_view RefusedBy(const AllReduce&) { return kOperation; }
std::string_view RefusedBy(const PrefetchParameters& op) { return RefusedField(op); }
std::string_view RefusedBy(const OffloadGradients& op) { return RefusedField(op); }
std::string_view RefusedBy(const PrefetchOptimizer& op) { return RefusedField(op); }
std::string_view RefusedBy(const OffloadOptimizer& op) { return RefusedField(op); }

}  // namespace

absl::Status RunsInEngine(const Program& program) {
  for (const std::vector<UnitBuffer>* buffers : {&program.parameter_buffers, &program.gradient_buffers}) {
    for (const UnitBuffer& buffer : *buffers) {
      if (buffer.num_units == 1) continue;
      return absl::UnimplementedError(absl::StrCat("program of rank ", program.rank, ": the engine does not run a buffer of ",
                                                   buffer.num_units, " units at once yet"));
    }
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Operation& op = program.instructions[i].op;
    const std::string_view what = std::visit([](const auto& o) { return RefusedBy(o); }, op);
    if (what.empty()) continue;
    const std::string name(OperationName(op));
    return absl::UnimplementedError(absl::StrCat(
        "program of rank ", program.rank, ", instruction ", i, " (", name, "): the engine does not run ",
        what == kOperation ? absl::StrCat("the operation ", name) : absl::StrCat(std::string(what), " in ", name), " yet"));
  }
  return absl::OkStatus();
}

}  // namespace motley
