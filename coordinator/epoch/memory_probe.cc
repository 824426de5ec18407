#include "coordinator/epoch/memory_probe.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/status_macros.h"
#include "coordinator/epoch/memory_limits.h"
#include "coordinator/state/membership.h"
#include "planner/live/job_request.h"
#include "planner/util/quantity_text.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kTaken = absl::Seconds(30);  // the time for whoever asked to take the end
constexpr char kPrefix[] = "memory-";

// The job that has the node, or looks at it for its next plan; empty: none.
JobId TakenBy(const ClusterState& state, const NodeName& node) {
  if (!state.run) return JobId();
  const JobRun& run = *state.run;
  const bool used = std::ranges::any_of(run.considered, [&](const DeviceDescription& d) { return NodeOf(d.id) == node; });
  const auto probe = run.probes.find(node);
  const bool measures = probe != run.probes.end() && probe->second.stage == ProbeStage::kProfile;
  return used || measures ? run.job : JobId();
}

absl::Status Taken(const NodeName& node, const JobId& job) {
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", job.value(), " uses node ", node.value(),
      ", and a probe wants all of its devices' memory; wait for the job's end, or `motley nodes drain ", node.value(), "`"));
}

std::string ModelText(const MemoryProbe& probe) {
  const std::string name = ModelName(probe.config.model);
  if (probe.tried.num_layers == probe.model.num_layers) return name;
  return absl::StrCat(probe.tried.num_layers, " of ", Count(probe.model.num_layers, "layer"), " of ", name);
}

// What the planner is told of the device: the layers that are tried.
planner::PlannerInput InputOf(const MemoryProbe& probe) {
  planner::PlannerInput input;
  input.cluster_name = probe.node.value();
  input.devices = {probe.devices[probe.at].device};
  input.compute = {probe.devices[probe.at].profile};
  input.model = probe.tried;
  input.config = probe.config;
  return input;
}

void End(Core& core, MemoryProbe& probe, absl::Status status) {
  probe.end = std::move(status);
  probe.asked = core.clock.Now();
  core.journal.WakeExaminers();
}

// Whoever has begun something under the awaited id ends it.
void CallOff(Core& core, const MemoryProbe& probe) {
  ProfileCommand over;
  over.job = JobId(probe.id);
  over.check_id = probe.awaited;
  if (!probe.end && !probe.awaited.empty()) core.Send(probe.node, std::move(over));
}

void Ask(Core& core, MemoryProbe& probe, RankAssignment rank, bool trial) {
  const DeviceDescription& device = probe.devices[probe.at].device;
  probe.awaited = absl::StrCat(probe.id, "-", ++probe.commands);
  probe.measuring = !trial;
  probe.asked = core.clock.Now();
  rank.job = JobId(probe.id);
  rank.epoch = Epoch(1);
  rank.devices = {device.id};
  rank.data_addresses = {core.state.nodes.at(probe.node).description.data_address};
  rank.device = device;
  ProfileCommand command;
  command.job = rank.job;
  command.epoch = rank.epoch;
  command.check_id = probe.awaited;
  command.trial = trial;
  if (!trial) command.compute_devices = {device.id};
  command.ranks = {std::move(rank)};
  core.Send(probe.node, std::move(command));
  core.journal.WakeExaminers();
}

absl::Status Try(Core& core, MemoryProbe& probe, int64_t samples) {
  MOTLEY_ASSIGN_OR_RETURN(planner::TrialPlan plan, planner::PlanTrial(InputOf(probe), samples));
  RankAssignment rank;
  rank.model = probe.tried;
  rank.config = probe.config;
  rank.config.training.global_batch_size = samples;
  rank.program = std::move(plan.program);
  rank.ownership = std::move(plan.ownership);
  rank.planned_bytes = plan.memory.total();
  rank.planned_context_bytes = plan.memory.context;
  Ask(core, probe, std::move(rank), /*trial=*/true);
  return absl::OkStatus();
}

absl::Status NotOneSample(const MemoryProbe& probe) {
  const planner::PlannerInput input = InputOf(probe);
  const DeviceDescription& device = input.devices[0];
  MOTLEY_ASSIGN_OR_RETURN(const planner::TrialPlan one, planner::PlanTrial(input, 1));
  const int64_t bytes = one.memory.total();
  MOTLEY_ASSIGN_OR_RETURN(const int64_t layers, planner::MostLayers(input));
  const std::string text =
      absl::StrCat("one sample of ", ModelText(probe), " does not fit ", device.id.value(), ": the ledger counts ",
                   planner::BytesText(bytes), ", it declares ", planner::BytesText(device.memory_bytes), "; ");
  return absl::ResourceExhaustedError(
      layers == 0 ? absl::StrCat(text, "not even one layer would: give a shorter --seq-len or a smaller model")
                  : absl::StrCat(text, "--layers ", layers, " would fit by the ledger"));
}

// The device's search is over: what plans may count on follows, and is kept.
absl::Status Keep(Core& core, MemoryProbe& probe) {
  ProbedDevice& probed = probe.devices[probe.at];
  const int64_t largest = probed.search.largest();
  if (largest == 0) return NotOneSample(probe);
  MOTLEY_ASSIGN_OR_RETURN(const planner::TrialPlan ran, planner::PlanTrial(InputOf(probe), largest));
  probed.ledger_bytes = ran.memory.total();
  ComputeProfile& profile = probed.profile;
  EventRecord event;
  event.kind = kind::kProfile;
  event.node = probe.node;
  event.device = probed.device.id;
  event.message = absl::StrCat(probed.device.id.value(), " trains ", Count(largest, "sample"), " of ", ModelText(probe),
                               " in one microbatch, as tried ", Count(profile.trials.size(), "time"), "; the ledger counts ",
                               planner::BytesText(probed.ledger_bytes), " for it");
  if (largest < planner::kMostProbedSamples) {
    MOTLEY_ASSIGN_OR_RETURN(const planner::TrialPlan more, planner::PlanTrial(InputOf(probe), largest + 1));
    const int64_t before = profile.usable_bytes > 0 ? profile.usable_bytes : probed.device.memory_bytes;
    probed.limited = planner::LedgerAllows(probed.device, more.memory.total()) && probed.ledger_bytes < before;
    if (probed.limited) {
      profile.usable_bytes = probed.ledger_bytes;
      event.kind = kind::kMemoryLimit;
      absl::StrAppend(&event.message, " and would allow more. Plans count on ", planner::BytesText(profile.usable_bytes),
                      " of it from now on, after ", planner::BytesText(before));
    }
  }
  return CommitProfile(core, probe.config, profile, std::move(event));
}

// What the device is to do next; the next device; the end.
absl::Status GoOn(Core& core, MemoryProbe& probe) {
  for (; probe.at < probe.devices.size(); ++probe.at) {
    ProbedDevice& probed = probe.devices[probe.at];
    if (probed.profile.digest.empty()) {
      absl::StatusOr<ComputeProfile> stored = StoredProfile(core, probe.config, probed.device);
      if (absl::IsNotFound(stored.status())) {
        RankAssignment rank;
        rank.model = probe.model;
        rank.config = probe.config;
        Ask(core, probe, std::move(rank), /*trial=*/false);
        return absl::OkStatus();
      }
      MOTLEY_RETURN_IF_ERROR(stored.status());
      probed.profile = *std::move(stored);
      probed.profile.trials.clear();
      probed.profile.trial_layers = probe.tried.num_layers;
    }
    if (const int64_t samples = probed.search.Next(); samples > 0) return Try(core, probe, samples);
    MOTLEY_RETURN_IF_ERROR(Keep(core, probe));
  }
  End(core, probe, absl::OkStatus());
  return absl::OkStatus();
}

absl::Status TakeMeasured(Core& core, MemoryProbe& probe, const ProfileReport& report) {
  ProbedDevice& probed = probe.devices[probe.at];
  if (report.fault == Fault::kMemory) {
    return absl::ResourceExhaustedError(
        absl::StrCat(report.error, "; not one sample of a single unit fits: give a shorter --seq-len or a smaller model"));
  }
  if (!report.error.empty()) return absl::FailedPreconditionError(absl::StrCat("it could not be measured: ", report.error));
  if (report.compute.size() != 1 || report.compute[0].device != probed.device.id)
    return absl::FailedPreconditionError(absl::StrCat(probed.device.id.value(), ": its worker measured nothing"));
  ComputeProfile profile = report.compute[0];
  MOTLEY_ASSIGN_OR_RETURN(profile.digest, ProfileDigestOf(probe.config, probed.device));
  EventRecord event;
  event.kind = kind::kProfile;
  event.node = probe.node;
  event.device = probed.device.id;
  event.message = absl::StrCat("measured ", probed.device.id.value(), " for a probe of its memory");
  return CommitProfile(core, probe.config, std::move(profile), std::move(event));
}

absl::Status TakeTrial(const Core& core, MemoryProbe& probe, const ProfileReport& report) {
  ProbedDevice& probed = probe.devices[probe.at];
  const int64_t samples = probed.search.Next();
  if (report.fault == Fault::kMemory && !report.error.empty()) {
    probed.profile.trials.push_back({.samples = samples});
  } else if (!report.error.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("the trial with ", Count(samples, "sample"), " failed: ", report.error));
  } else if (!report.trial) {
    return absl::FailedPreconditionError(absl::StrCat("the worker of node ", probe.node.value(), " is of version ",
                                                      CleanLine(core.state.nodes.at(probe.node).description.version),
                                                      ", which knows no trials; upgrade it"));
  } else if (report.trial->samples != samples || !(report.trial->seconds > 0)) {
    return absl::FailedPreconditionError(absl::StrCat("the worker of node ", probe.node.value(), " answered another trial"));
  } else {
    probed.profile.trials.push_back(*report.trial);
  }
  probe.last_took = core.clock.Now() - probe.asked;
  probed.search.Take(probed.profile.trials.back().seconds > 0);
  return absl::OkStatus();
}

// Why it cannot go on; OK: it can.
absl::Status MayGoOn(const Core& core, const MemoryProbe& probe) {
  const auto node = core.state.nodes.find(probe.node);
  const bool there =
      node != core.state.nodes.end() && node->second.connected && node->second.description.incarnation == probe.incarnation;
  if (!there)
    return absl::AbortedError(absl::StrCat("node ", probe.node.value(), " went away; nothing of the probe is left there"));
  if (const JobId job = TakenBy(core.state, probe.node); !job.value().empty())
    return absl::AbortedError(
        absl::StrCat("job ", job.value(), " takes node ", probe.node.value(), ", so the probe ended; ask again behind it"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const int>> BeginMemoryProbe(Core& core, const NodeName& name, const JobConfig& config,
                                                            int64_t layers) {
  AdvanceMemoryProbe(core);  // one that nobody waits for any more is over
  const auto node = core.state.nodes.find(name);
  if (node == core.state.nodes.end() || node->second.forgotten)
    return absl::NotFoundError(absl::StrCat("no node ", Echo(name.value()), "; `motley nodes` lists them"));
  if (!node->second.connected)
    return absl::FailedPreconditionError(absl::StrCat("node ", name.value(), " is not there: start motley-worker on it again"));
  if (const JobId job = TakenBy(core.state, name); !job.value().empty()) return Taken(name, job);
  if (core.memory_probe)
    return absl::AbortedError(
        absl::StrCat("the memory of node ", core.memory_probe->node.value(), " is being probed; ask again behind that"));
  MemoryProbe probe;
  for (const DeviceDescription& device : node->second.description.devices) {
    if (!device.card.lost.empty()) continue;
    if (device.memory_bytes == 0)
      return absl::FailedPreconditionError(
          absl::StrCat(device.id.value(), " declares no memory_bytes, so there is no limit to be found"));
    probe.devices.push_back({.device = device});
  }
  if (probe.devices.empty())
    return absl::FailedPreconditionError(absl::StrCat("node ", name.value(), " has no device that can be used"));
  MOTLEY_RETURN_IF_ERROR(planner::CheckComputeType(node->second.description.devices, config));
  MOTLEY_ASSIGN_OR_RETURN(probe.model, ResolveModel(config));
  probe.tried = planner::FirstLayers(probe.model, layers == 0 ? probe.model.num_layers : layers);
  probe.node = name;
  probe.incarnation = node->second.description.incarnation;
  probe.config = config;
  std::random_device random;
  probe.id = absl::StrCat(kPrefix, absl::StrFormat("%08x", random()));
  probe.begun = probe.asked = core.clock.Now();
  MOTLEY_RETURN_IF_ERROR(GoOn(core, probe));
  core.memory_probe = std::move(probe);
  auto ticket = std::make_shared<const int>(0);
  core.memory_prober = ticket;
  return ticket;
}

void AdvanceMemoryProbe(Core& core) {
  if (!core.memory_probe) return;
  MemoryProbe& probe = *core.memory_probe;
  if (core.memory_prober.expired()) {
    CallOff(core, probe);
    return EndMemoryProbe(core);
  }
  if (probe.end) {
    if (core.clock.Now() - probe.asked > kTaken) EndMemoryProbe(core);
    return;
  }
  if (absl::Status may = MayGoOn(core, probe); !may.ok()) {
    CallOff(core, probe);
    return End(core, probe, std::move(may));
  }
  core.journal.WakeExaminers();  // for what it does
}

const MemoryProbe* FindMemoryProbe(const Core& core, const std::shared_ptr<const int>& ticket) {
  return core.memory_probe && core.memory_prober.lock() == ticket ? &*core.memory_probe : nullptr;
}

void EndMemoryProbe(Core& core) {
  core.memory_probe.reset();
  core.memory_prober.reset();
  core.journal.WakeExaminers();
}

bool IsOfMemoryProbe(const std::string& check_id) { return absl::StartsWith(check_id, kPrefix); }

void OnProbedMemory(Core& core, const NodeName& node, const ProfileReport& report) {
  if (!core.memory_probe) return;
  MemoryProbe& probe = *core.memory_probe;
  if (probe.end || node != probe.node || report.check_id != probe.awaited) return;
  absl::Status status = MayGoOn(core, probe);
  if (status.ok()) status = probe.measuring ? TakeMeasured(core, probe, report) : TakeTrial(core, probe, report);
  if (status.ok()) status = GoOn(core, probe);
  if (!status.ok()) End(core, probe, std::move(status));
}

std::string Doing(absl::Duration now, const MemoryProbe& probe) {
  const ProbedDevice& probed = probe.devices[std::min(probe.at, probe.devices.size() - 1)];
  const std::string gone = absl::StrFormat(", %.0f s gone", absl::ToDoubleSeconds(now - probe.begun));
  std::string text = absl::StrCat(probed.device.id.value(), ": ");
  if (probe.measuring) {
    absl::StrAppend(&text, "measuring its units for the ledger", gone);
  } else {
    absl::StrAppend(&text, "trial ", probed.profile.trials.size() + 1, " with ", Count(probed.search.Next(), "sample"), gone);
    const int left = probed.search.MostLeft();
    if (probe.last_took > absl::ZeroDuration())
      absl::StrAppend(&text, ", at most ", Count(left, "trial"), " left, about ",
                      absl::StrFormat("%.0f s", left * absl::ToDoubleSeconds(probe.last_took)));
  }
  if (const size_t devices = probe.devices.size() - probe.at; devices > 1)
    absl::StrAppend(&text, ", then ", Count(devices - 1, "device"), " more");
  return text;
}

}  // namespace motley::coordinator
