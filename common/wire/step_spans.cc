#include "common/wire/step_spans.h"

#include <cstdint>
#include <utility>

#include "common/wire/both_ways.h"

namespace motley::wire {
WIRE_MESSAGE(v1::LaneSeconds, LaneSeconds) {
  const auto busy = [&plain](Lane lane) -> auto& { return plain.busy[static_cast<size_t>(lane)]; };
  WIRE_FIELD(compute, busy(Lane::kCompute));
  WIRE_FIELD(collective, busy(Lane::kCollective));
  WIRE_FIELD(send, busy(Lane::kSend));
  WIRE_FIELD(receive, busy(Lane::kReceive));
  WIRE_FIELD(copy, busy(Lane::kCopy));
  WIRE_FIELD(waits_for_collective, plain.collective);
  WIRE_FIELD(waits_for_hand_over, plain.hand_over);
  WIRE_FIELD(waits_in_bubble, plain.bubble);
  WIRE_FIELD(waits_for_host, plain.host);
  WIRE_FIELD(waits_for_copies, plain.copy);
}

// Lanes run side by side, so an instruction may begin before the one above it: signed differences, which are small.
v1::InstructionSpans ToProto(const std::vector<InstructionSpan>& spans) {
  v1::InstructionSpans proto;
  int64_t before_ns = 0;
  for (const InstructionSpan& span : spans) {
    const int64_t begin_ns = absl::ToInt64Nanoseconds(span.begin);
    proto.add_begin_ns(begin_ns - before_ns);
    proto.add_duration_ns(absl::ToInt64Nanoseconds(span.end) - begin_ns);
    before_ns = begin_ns;
  }
  return proto;
}

std::optional<std::vector<InstructionSpan>> FromProto(const v1::InstructionSpans& proto) {
  if (proto.begin_ns_size() != proto.duration_ns_size()) return std::nullopt;
  std::vector<InstructionSpan> spans;
  absl::Duration begin;
  for (int i = 0; i < proto.begin_ns_size(); ++i) {
    begin += absl::Nanoseconds(proto.begin_ns(i));
    spans.push_back({begin, begin + absl::Nanoseconds(proto.duration_ns(i))});
  }
  return spans;
}

WIRE_MESSAGE(v1::TraceResult, TraceReport) {
  WIRE_STAMP();
  WIRE_FIELD(rank, plain.rank);
  WIRE_FIELD(step, plain.step);
  WIRE_FIELD(error, plain.error);
  WIRE_FIELD(step_seconds, plain.step_seconds);
  if constexpr (Way::kWrites) {
    *proto.mutable_spans() = ToProto(plain.spans);
  } else if (std::optional<std::vector<InstructionSpan>> spans = FromProto(proto.spans())) {
    plain.spans = *std::move(spans);
  } else {
    plain.error = "its begins and durations are not equally many";
  }
}

}  // namespace motley::wire
