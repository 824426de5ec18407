// The state as the public API shows it.
#pragma once

#include "coordinator/core/core.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/event.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

v1::JobState StateOf(JobPhase phase);
v1::StepRecord View(const StepStats& step);
v1::Job View(const JobStatus& job);  // without spec, and what follows from it
v1::Job View(const JobRecord& job);
// As asked for now: a queued job says how long it waits and may wait.
v1::Job View(const Core& core, const JobRecord& job);
// Without the documents that may be long, model.config_json and planner.plan_json.
v1::JobSpec BriefSpec(const JobConfig& config);
v1::Event View(const EventRecord& event);
v1::LogLine View(const LogRecord& line);
v1::JobHistory View(const History& history);
v1::Node View(const ClusterState& state, const NodeRecord& node);

}  // namespace motley::coordinator
