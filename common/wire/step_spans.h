// LaneSeconds, spans and TraceReport <-> proto.
#pragma once

#include <optional>
#include <vector>

#include "common/session/session.h"
#include "proto/motley/v1/worker.pb.h"

namespace motley::wire {

v1::LaneSeconds ToProto(const LaneSeconds& seconds);
LaneSeconds FromProto(const v1::LaneSeconds& proto);

v1::InstructionSpans ToProto(const std::vector<InstructionSpan>& spans);
// Nothing: the lists are not equally long.
std::optional<std::vector<InstructionSpan>> FromProto(const v1::InstructionSpans& proto);

v1::TraceResult ToProto(const TraceReport& report);
// Spans that cannot be read: an error in the report.
TraceReport FromProto(const v1::TraceResult& proto);

}  // namespace motley::wire
