#include "planner/graph/program_meeting.h"

#include "absl/strings/str_cat.h"

namespace motley::planner {
namespace {

template <typename Op>
Together UnitTogether(const Op& op) {
  Together together{.group = op.group, .unit = op.unit};
  if constexpr (requires { op.more_units; }) together.more_units = op.more_units;
  if constexpr (requires { op.elements; }) together.elements = op.elements.count;
  if constexpr (requires { op.root; }) together.root = op.root;
  if constexpr (requires { op.of; }) together.of = op.of;
  if constexpr (requires { op.segment; }) together.segment = op.segment;
  return together;
}
void AddSamples(const Program& program, int32_t first, int32_t more, Together& together) {
  together.first_sample = program.microbatches[first].first;
  together.end_sample = program.microbatches[first + more].end();
  together.more_microbatches = more;
}

Together TogetherBy(const Program&, const Gather& op) { return UnitTogether(op); }
Together TogetherBy(const Program&, const Broadcast& op) { return UnitTogether(op); }
Together TogetherBy(const Program&, const ReduceScatter& op) { return UnitTogether(op); }
Together TogetherBy(const Program&, const AllReduce& op) { return UnitTogether(op); }
Together TogetherBy(const Program& program, const AllReduceActivation& op) {
  Together together = UnitTogether(op);
  AddSamples(program, op.microbatch, 0, together);
  return together;
}
Together TogetherBy(const Program& program, const BroadcastActivation& op) {
  Together together = UnitTogether(op);
  AddSamples(program, op.microbatch, 0, together);
  return together;
}
Together TogetherBy(const Program&, const ReduceScalars&) { return {}; }

template <typename Op>
HandOver HandOverBy(const Op& op, bool gradient) {
  return {op.peer, op.unit, op.first, op.samples, gradient};
}

}  // namespace

std::optional<Together> TogetherOf(const Program& program, const Operation& op) {
  return std::visit(
      [&program]<typename Op>(const Op& o) -> std::optional<Together> {
        if constexpr (Op::kTraits.lane == Lane::kCollective) return TogetherBy(program, o);
        if constexpr (requires { o.tp_group; }) {
          if (o.tp_group == -1) return std::nullopt;
          Together together{.group = o.tp_group, .unit = o.unit, .more_units = o.more_units};
          AddSamples(program, o.microbatch, o.more_microbatches, together);
          return together;
        }
        return std::nullopt;
      },
      op);
}

bool IsTogether(const Operation& op) {
  return std::visit(
      []<typename Op>(const Op& o) {
        if constexpr (requires { o.tp_group; }) return o.tp_group != -1;
        return Op::kTraits.lane == Lane::kCollective;
      },
      op);
}

std::optional<HandOver> HandOverOf(const Operation& op) {
  if (const auto* o = std::get_if<SendActivation>(&op)) return HandOverBy(*o, false);
  if (const auto* o = std::get_if<ReceiveActivation>(&op)) return HandOverBy(*o, false);
  if (const auto* o = std::get_if<SendGradient>(&op)) return HandOverBy(*o, true);
  if (const auto* o = std::get_if<ReceiveGradient>(&op)) return HandOverBy(*o, true);
  return std::nullopt;
}

std::string DescribeInstruction(const Program& program, int32_t index) {
  const Operation& op = program.instructions[index].op;
  std::string what;
  if (const auto together = TogetherOf(program, op); together && together->unit >= 0) {
    what = absl::StrCat(" unit ", together->unit);
    if (together->more_units > 0) absl::StrAppend(&what, "-", together->unit + together->more_units);
  }
  if (const auto handed = HandOverOf(op)) {
    what = absl::StrCat(" unit ", handed->unit, " samples ", handed->first, " to ", handed->first + handed->samples, " peer ",
                        handed->peer);
  }
  return absl::StrCat("instruction ", index, " (", std::string(OperationName(op)), what, ")");
}

}  // namespace motley::planner
