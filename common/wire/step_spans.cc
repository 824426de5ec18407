#include "common/wire/step_spans.h"

#include <cstdint>
#include <utility>

namespace motley::wire {
namespace {

double& Busy(LaneSeconds& seconds, Lane lane) { return seconds.busy[static_cast<size_t>(lane)]; }
double Busy(const LaneSeconds& seconds, Lane lane) { return seconds.busy[static_cast<size_t>(lane)]; }

}  // namespace

v1::LaneSeconds ToProto(const LaneSeconds& seconds) {
  v1::LaneSeconds proto;
  proto.set_compute(Busy(seconds, Lane::kCompute));
  proto.set_collective(Busy(seconds, Lane::kCollective));
  proto.set_send(Busy(seconds, Lane::kSend));
  proto.set_receive(Busy(seconds, Lane::kReceive));
  proto.set_waits_for_collective(seconds.collective);
  proto.set_waits_for_hand_over(seconds.hand_over);
  proto.set_waits_in_bubble(seconds.bubble);
  proto.set_waits_for_host(seconds.host);
  proto.set_copy(Busy(seconds, Lane::kCopy));
  proto.set_waits_for_copies(seconds.copy);
  return proto;
}

LaneSeconds FromProto(const v1::LaneSeconds& proto) {
  LaneSeconds seconds;
  Busy(seconds, Lane::kCompute) = proto.compute();
  Busy(seconds, Lane::kCollective) = proto.collective();
  Busy(seconds, Lane::kSend) = proto.send();
  Busy(seconds, Lane::kReceive) = proto.receive();
  seconds.collective = proto.waits_for_collective();
  seconds.hand_over = proto.waits_for_hand_over();
  seconds.bubble = proto.waits_in_bubble();
  seconds.host = proto.waits_for_host();
  Busy(seconds, Lane::kCopy) = proto.copy();
  seconds.copy = proto.waits_for_copies();
  return seconds;
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

v1::TraceResult ToProto(const TraceReport& report) {
  v1::TraceResult proto;
  proto.set_job_id(report.job.value());
  proto.set_epoch(report.epoch.value());
  proto.set_rank(report.rank);
  proto.set_step(report.step);
  proto.set_error(report.error);
  proto.set_step_seconds(report.step_seconds);
  *proto.mutable_spans() = ToProto(report.spans);
  return proto;
}

TraceReport FromProto(const v1::TraceResult& proto) {
  TraceReport report{
      JobId(proto.job_id()), Epoch(proto.epoch()), proto.rank(), proto.step(), proto.error(), proto.step_seconds(), {}};
  std::optional<std::vector<InstructionSpan>> spans = FromProto(proto.spans());
  if (spans) {
    report.spans = *std::move(spans);
  } else {
    report.error = "its begins and durations are not equally many";
  }
  return report;
}

}  // namespace motley::wire
