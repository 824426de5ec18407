#include "coordinator/epoch/starting.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "common/program/program.h"
#include "coordinator/epoch/holdings_round.h"
#include "coordinator/epoch/plan_sentence.h"
#include "coordinator/epoch/planning_inputs.h"
#include "coordinator/epoch/setup.h"
#include "coordinator/epoch/steps.h"
#include "coordinator/state/membership.h"
#include "coordinator/state/transports.h"
#include "planner/plan/unit_slices.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kTicketOfStart = absl::Hours(1);

EventRecord JobEvent(const JobRecord& job, const char* kind, std::string message) {
  EventRecord event;
  event.job = job.id;
  event.kind = kind;
  event.epoch = job.epoch;
  event.message = std::move(message);
  return event;
}

absl::StatusOr<PlanRow> RowOf(const JobRecord& job, const planner::PlanResult& result) {
  MOTLEY_ASSIGN_OR_RETURN(const v1::GetPlanningInputsResponse inputs, PlanningInputsOf(result.inputs, job.config));
  PlanRow row{
      job.id, job.epoch,     planner::ToJson(result.plan), planner::ToText(result.plan), result.explanation, result.trace_json,
      {},     ToJson(inputs)};
  for (const Program& program : result.programs) row.programs.push_back(ToText(program));
  return row;
}

// Where the plan puts a rank.
struct Place {
  DeviceDescription device;
  int pipeline = 0, stage = 0;
  planner::MemoryByPurpose memory;  // of its peak
};

// By rank: pipelines, stages, units and ranks in the plan's order.
absl::StatusOr<std::vector<Place>> PlacesOf(const planner::Plan& plan, const std::vector<DeviceDescription>& considered) {
  std::map<DeviceId, const DeviceDescription*> offered;
  for (const DeviceDescription& device : considered) offered[device.id] = &device;
  std::vector<Place> places;
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const std::vector<planner::StagePlan>& stages = plan.pipelines[p].stages;
    for (size_t s = 0; s < stages.size(); ++s) {
      for (const planner::UnitPlan& unit : stages[s].units) {
        for (const planner::RankPlan& rank : unit.ranks) {
          const auto device = offered.find(rank.device);
          if (device == offered.end()) {
            return absl::InternalError(absl::StrCat("the plan uses device ", rank.device.value(), ", which is not there"));
          }
          places.push_back({*device->second, static_cast<int>(p), static_cast<int>(s), rank.predicted.memory});
        }
      }
    }
  }
  return places;
}

std::string DigestOf(const planner::PlanResult& plan) {
  Sha256 digest;
  for (const std::vector<Program>* programs : {&plan.programs, &plan.evaluations}) {
    for (const Program& program : *programs) {
      const std::string text = ToText(program);
      digest.Update(text.data(), text.size());
    }
  }
  return digest.Hex();
}

// What all ranks have in common.
RankAssignment Common(const ClusterState& state, const Prepared& prepared, const JobRecord& job, const ModelShape& shape,
                      const std::vector<Place>& places) {
  RankAssignment common;
  common.job = job.id;
  common.job_uid = job.uid;
  common.owns_unnamed_checkpoints = job.has_unnamed_checkpoints;
  common.epoch = job.epoch;
  for (const Place& place : places) {
    common.devices.push_back(place.device.id);
    common.data_addresses.push_back(state.nodes.at(NodeOf(place.device.id)).description.data_address);
  }
  common.ownership = *prepared.plan.plan.ownership;
  common.programs_digest = DigestOf(prepared.plan);
  common.predicted_step_seconds = prepared.plan.plan.predicted.step_seconds;
  common.start_step = prepared.start_step;
  common.resume_from = prepared.resume_from;
  common.spared_checkpoints = prepared.unjudged;
  common.model = shape;
  common.config = RankConfig(job);
  common.data_digest = job.data.digest;
  common.validation_digest = job.validation.digest;
  common.first_progress_seconds = kFirstProgressSeconds;
  return common;
}

// Of a checkpoint: every parameter and its two moments.
int64_t StateBytes(const RankAssignment& rank) {
  constexpr int64_t kTensors = 3, kLargestElementBytes = 8;
  return NumParameters(rank.model) * kTensors * kLargestElementBytes;
}

}  // namespace

absl::StatusOr<std::vector<RankAssignment>> MakeAssignments(const ClusterState& state, const JobRun& run, const JobRecord& job) {
  const planner::PlanResult& result = run.prepared->plan;
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape shape, ResolveModel(job.config));
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Place> places, PlacesOf(result.plan, run.considered));
  if (result.programs.size() != places.size() || result.evaluations.size() != places.size() ||
      result.lanes.size() != places.size() || result.card_contexts.size() != places.size()) {
    return absl::InternalError(absl::StrCat("the plan has ", places.size(), " ranks, ", result.programs.size(), " programs, ",
                                            result.evaluations.size(), " evaluations, ", result.lanes.size(),
                                            " times of lanes and ", result.card_contexts.size(), " contexts"));
  }
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<ModelSlice> slices, planner::SlicesOfRanks(shape, result.plan));
  std::vector<RankAssignment> ranks(places.size(), Common(state, *run.prepared, job, shape, places));
  for (size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].rank = static_cast<int>(r);
    ranks[r].device = places[r].device;
    ranks[r].pipeline = places[r].pipeline;
    ranks[r].stage = places[r].stage;
    ranks[r].planned_context_bytes = places[r].memory.context;
    ranks[r].planned_host_bytes = places[r].memory.host;
    ranks[r].planned_bytes = places[r].memory.total();
    ranks[r].slice = slices[r];
    ranks[r].program = result.programs[r];
    ranks[r].evaluation = result.evaluations[r];
    ranks[r].predicted_lanes = result.lanes[r];
  }
  return ranks;
}

absl::Status StartEpoch(Core& core, const std::string& reason) {
  JobRun& run = *core.state.run;
  JobRecord& job = core.state.jobs.at(run.job);
  const Prepared& prepared = *run.prepared;
  JobRecord next = WithPhase(job, JobPhase::kStarting, reason);
  // Processes that were started under the newest number, for profiling, must not be mistaken for this epoch's.
  if (run.started_processes) next.epoch = Epoch(job.epoch.value() + 1);
  next.epoch = std::max(next.epoch, prepared.epoch);
  if (AdoptsAll(next)) {
    next.adopted_below = next.epoch;
    next.go_back.epoch = std::min(next.go_back.epoch, Epoch(next.epoch.value() - 1));
  }
  const bool new_number = next.epoch > job.epoch;
  if (next.started_unix_ms == 0) next.started_unix_ms = core.journal.UnixMs();
  next.predicted_step_seconds = prepared.plan.plan.predicted.step_seconds;
  if (!prepared.resume_from.empty() && !prepared.initial) next.newest_checkpoint = prepared.resume_from;
  next.adopted = prepared.adopted;  // on disk before the ranks use up the file
  next.step = prepared.start_step;
  // The store was older than the checkpoint: nothing is known of the step that it has, and another one's loss is not shown for
  // it.
  if (next.last_step.step < next.step) next.last_step = {};
  MOTLEY_ASSIGN_OR_RETURN(std::vector<RankAssignment> ranks, MakeAssignments(core.state, run, next));

  Batch batch;
  batch.jobs.push_back(next);
  MOTLEY_ASSIGN_OR_RETURN(PlanRow plan_row, RowOf(next, prepared.plan));
  batch.plans.push_back(std::move(plan_row));
  EpochRow row{next.id, next.epoch, core.journal.UnixMs(), {}};
  std::vector<RankRun> runs;
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<Place> places, PlacesOf(prepared.plan.plan, run.considered));
  for (const RankAssignment& rank : ranks) {
    const int64_t incarnation = core.state.nodes.at(NodeOf(rank.device.id)).description.incarnation;
    row.ranks.push_back({rank.device.id, incarnation});
    RankRun& of_rank = runs.emplace_back(RankRun{rank.device.id, incarnation, rank.device.memory_bytes});
    of_rank.planned_context_bytes = rank.planned_context_bytes;
    of_rank.predicted_lanes = rank.predicted_lanes;
    of_rank.planned_host_bytes = rank.planned_host_bytes;
    of_rank.planned = places[rank.rank].memory;
    of_rank.card_context_bytes = prepared.plan.card_contexts[rank.rank];
  }
  if (new_number) batch.epochs.push_back(std::move(row));
  for (const std::string& skipped : prepared.skipped) {
    const std::string used = prepared.resume_from.empty() ? "the initial weights are" : absl::StrCat(prepared.resume_from, " is");
    batch.events.push_back(JobEvent(next, kind::kCheckpointSkipped, absl::StrCat(skipped, "; ", used, " used instead")));
  }
  if (!prepared.plan.dropped_pins.empty() && prepared.plan.dropped_pins != run.dropped_pins) {
    batch.events.push_back(JobEvent(next, kind::kPinsDropped,
                                    absl::StrCat("planned without pins: ", absl::StrJoin(prepared.plan.dropped_pins, "; "))));
  }
  batch.events.push_back(JobEvent(next, kind::kPlan, PlanSentence(prepared)));
  batch.events.push_back(PhaseEvent(job, next));
  MOTLEY_RETURN_IF_ERROR(core.journal.Commit(batch));
  job = next;

  core.metrics.planner_seconds.Set(prepared.plan.planning_seconds);
  core.metrics.checkpoint_failures.Add({{"job_id", job.id.value()}}, 0);  // an alert watches it grow
  run.stage = Stage::kStarting;
  run.stage_since = core.clock.Now();
  run.started_processes = true;
  run.ranks = std::move(runs);
  run.ranks_in_order = true;
  run.planned_transports = PlannedTransports(ranks);
  run.transports.clear();
  run.context.BeginGeneration();
  run.host_room.clear();
  run.ideal_step_seconds = prepared.plan.plan.predicted.ideal_seconds();
  run.failures.clear();
  run.kv.clear();
  run.kv_bytes = 0;
  run.kv_waiters.clear();
  run.first_step = prepared.start_step;
  run.resumed_from = prepared.resume_from;
  run.begins_with_other = prepared.initial && prepared.source;
  run.resume_bytes = prepared.resume_bytes;
  run.epoch_steps = 0;
  run.recent_step_seconds.clear();
  WatchRanks(core, ranks);
  core.copy_rate.Begin();
  run.typical_step_seconds = 0;
  run.saved_step = prepared.start_step;
  run.state_bytes = StateBytes(ranks.front());
  run.dropped_pins = prepared.plan.dropped_pins;
  run.proven_without_plan.clear();
  const std::optional<UnitedCheckpoint> source = prepared.source;
  const std::map<NodeName, FilesOffer> offers = prepared.offers;
  const CheckpointOwner of_source = prepared.initial ? job.initial_of : OwnerOf(job);
  run.prepared.reset();
  std::map<NodeName, StartCommand> commands;
  for (RankAssignment& rank : ranks) {
    const NodeName node = NodeOf(rank.device.id);
    commands[node].ranks.push_back(std::move(rank));
  }
  for (auto& [node, command] : commands) {
    if (source) command.source = SourceFor(core, node, *source, of_source.uid, offers, kTicketOfStart);
    if (source && of_source.uid != job.uid) command.source.job = of_source.job, command.source.job_uid = of_source.uid;
    command.source.verify = source && run.read_twice.contains(source->head.name);
    core.Send(node, std::move(command));
  }
  return absl::OkStatus();
}

}  // namespace motley::coordinator
