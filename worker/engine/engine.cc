#include "worker/engine/engine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/memory_shortage.h"
#include "common/base/status_macros.h"
#include "common/device/transport_choice.h"
#include "common/program/hand_over_peers.h"
#include "worker/engine/base/heartbeat.h"
#include "worker/engine/base/memory.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/base/out_of_memory.h"
#include "worker/engine/base/threads.h"
#include "worker/engine/device/card_trial.h"
#include "worker/engine/device/cuda_libraries.h"
#include "worker/engine/device/device_backend.h"
#include "worker/engine/memory_trial.h"
#include "worker/engine/profiler/collective_profiler.h"
#include "worker/engine/profiler/compute_profiler.h"
#include "worker/engine/profiler/link_profiler.h"
#include "worker/engine/profiler/measurable.h"
#include "worker/engine/profiler/overlap_profiler.h"
#include "worker/engine/trainer.h"
#include "worker/engine/transport/connect_communicator.h"
#include "worker/engine/transport/link_clock.h"

namespace motley::engine {
namespace {

// Turns what torch throws outside of instructions into a Status.
template <typename Call>
auto Guarded(const char* what, const RankAssignment& assignment, Call call) -> decltype(call()) {
  const std::string where = absl::StrCat(what, " on ", assignment.devices[assignment.rank].value());
  try {
    return call();
  } catch (const c10::OutOfMemoryError& error) {
    return OutOfMemory(where, error);
  } catch (const c10::Error& error) {
    return absl::InternalError(absl::StrCat(where, ": ", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(where, ": ", error.what()));
  }
}

// What only the rank as a whole knows.
absl::Status WithBytes(absl::Status status, const RankAssignment& assignment, const DeviceBackend& backend) {
  if (FaultOf(status) != Fault::kMemory) return status;
  MemoryShortage shortage = MemoryShortageOf(status).value_or(MemoryShortage());
  if (shortage.tier == MemoryTier::kHost) return status;  // host_tier.h knew all of it
  const MemoryRefusal refusal = backend.LastRefusal();
  shortage.held_bytes = refusal.held_bytes;
  shortage.asked_bytes = refusal.asked_bytes;
  shortage.planned_bytes = assignment.planned_bytes;
  return WithMemoryShortage(std::move(status), shortage);
}

absl::Status CheckAssignment(const RankAssignment& assignment) {
  if (assignment.devices.empty() || assignment.rank < 0 || assignment.rank >= assignment.world() ||
      assignment.data_addresses.size() != assignment.devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat("assignment: rank ", assignment.rank, " of ", assignment.world(),
                                                   " devices with ", assignment.data_addresses.size(), " data addresses"));
  }
  return absl::OkStatus();
}

// The groups of the rank's programs and the peers of their hand-overs; without programs, for profiling, the group of all.
void AddPeers(const RankAssignment& assignment, CommunicatorOptions& options) {
  const Program& program = assignment.program;
  for (const std::vector<int32_t>& group : program.groups) options.groups.emplace_back(group.begin(), group.end());
  if (program.groups.empty()) options.groups = {EveryRank(assignment.world())};
  HandOverPeers peers = HandOverPeersOf(program, assignment.evaluation);
  options.sends_to = std::move(peers.sends_to);
  options.receives_from = std::move(peers.receives_from);
}

LinkPlan LinksOf(const RankAssignment& assignment) { return {assignment.devices, assignment.link_pairs}; }

absl::StatusOr<CollectiveProfile> ProfileTogether(const RankAssignment& assignment, DeviceBackend& backend,
                                                  Communicator& communicator) {
  MOTLEY_ASSIGN_OR_RETURN(CollectiveProfile profile, ProfileRing(assignment, backend, communicator));
  const int64_t begin_ns = MonotonicNs();
  MOTLEY_ASSIGN_OR_RETURN(profile.links, ProfileLinks(LinksOf(assignment), backend, communicator));
  MOTLEY_ASSIGN_OR_RETURN(profile.overlap, ProfileOverlap(assignment, backend, communicator));
  profile.profile_seconds += (MonotonicNs() - begin_ns) * 1e-9;
  return profile;
}

class EngineImpl : public Engine {
 public:
  EngineImpl(RankHost& host, const EngineOptions& options) : host_(host), options_(options) {}

  absl::StatusOr<RunEnd> Run(const RankAssignment& assignment) override {
    // However this run ends, the next one starts without its stop.
    const absl::Cleanup forget_stop = [this] { stop_.stop = stop_.save = false; };
    MOTLEY_RETURN_IF_ERROR(CheckAssignment(assignment));
    // The compute lane has the cores. Two teams in a process are more threads than cores to OpenMP, whose threads then sleep at
    // every barrier.
    SetThreads(1);
    return Guarded("training", assignment, [&]() -> absl::StatusOr<RunEnd> {
      MOTLEY_ASSIGN_OR_RETURN(DeviceBackend * backend, Backend(assignment));
      const CountingIn counting(backend->host_account());
      MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, Connect(assignment, *backend, "train/"));
      Trainer trainer(assignment, options_, *backend, host_, *communicator, *links_, stop_);
      absl::StatusOr<RunEnd> end = Guarded("training", assignment, [&] { return trainer.Run(); });
      if (end.ok()) return end;
      // Peers that still wait for this rank must not wait for their deadline.
      communicator->Abort(std::string(end.status().message()));
      return WithBytes(end.status(), assignment, *backend);
    });
  }

  void RequestStop(bool save) override {
    stop_.save = save;
    stop_.stop = true;
  }

  absl::StatusOr<ComputeProfile> ProfileCompute(const RankAssignment& assignment) override {
    MOTLEY_RETURN_IF_ERROR(CheckAssignment(assignment));
    MOTLEY_RETURN_IF_ERROR(CheckMeasurable(assignment));
    SetThreads(assignment.device.threads);
    return Guarded("profiling compute", assignment, [&]() -> absl::StatusOr<ComputeProfile> {
      MOTLEY_ASSIGN_OR_RETURN(DeviceBackend * backend, Backend(assignment));
      const CountingIn counting(backend->host_account());
      SystemClock clock;
      ComputePacer pacer(assignment.device, clock);
      ProgressMeter progress(host_);
      pacer.set_heartbeat([&] { progress.Beat("profiling compute"); });
      ProfileTime time(clock);
      const ComputeProfile profile = ProfileUnits(assignment, *backend, pacer, time);
      if (profile.cut_short) host_.OnLog(absl::StrCat(assignment.device.id.value(), ": its profile was ", time.CutShortText()));
      return profile;
    });
  }

  absl::StatusOr<CollectiveProfile> ProfileCollectives(const RankAssignment& assignment) override {
    MOTLEY_RETURN_IF_ERROR(CheckAssignment(assignment));
    return Guarded("profiling collectives", assignment, [&]() -> absl::StatusOr<CollectiveProfile> {
      MOTLEY_ASSIGN_OR_RETURN(DeviceBackend * backend, Backend(assignment));
      const CountingIn counting(backend->host_account());
      MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator,
                              Connect(assignment, *backend, "profile/", LinkPeers(LinksOf(assignment), assignment.rank)));
      ProgressMeter progress(host_);
      communicator->set_progress([&] { progress.Beat("profiling collectives and links"); });
      absl::StatusOr<CollectiveProfile> profile = ProfileTogether(assignment, *backend, *communicator);
      if (!profile.ok()) communicator->Abort(std::string(profile.status().message()));
      return profile;
    });
  }

  absl::StatusOr<MemoryTrial> TryMemory(const RankAssignment& assigned) override {
    MOTLEY_RETURN_IF_ERROR(CheckAssignment(assigned));
    RankAssignment assignment = assigned;
    assignment.device.flops_per_second = 0;  // memory is what is asked: nothing is paced
    SetThreads(1);
    return Guarded("trying memory", assignment, [&]() -> absl::StatusOr<MemoryTrial> {
      MOTLEY_ASSIGN_OR_RETURN(DeviceBackend * backend, Backend(assignment));
      const CountingIn counting(backend->host_account());
      MOTLEY_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, Connect(assignment, *backend, "trial/"));
      absl::StatusOr<MemoryTrial> trial = Guarded(
          "trying memory", assignment, [&] { return RunMemoryTrial(assignment, *backend, host_, *communicator, *links_); });
      return trial.ok() ? trial : WithBytes(trial.status(), assignment, *backend);
    });
  }

 private:
  // Opened once: an engine drives one device.
  absl::StatusOr<DeviceBackend*> Backend(const RankAssignment& assignment) {
    if (options_.backend == nullptr && backend_ == nullptr) {
      ProgressMeter progress(host_);
      const Heartbeat heartbeat(
          kStartBeat, [&] { progress.Beat("opening the device"); }, kLongestStart);
      MOTLEY_ASSIGN_OR_RETURN(backend_, OpenBackend(assignment.device, assignment.data_addresses[assignment.rank]));
      if (const std::string note = backend_->note(); !note.empty()) {
        host_.OnLog(absl::StrCat(assignment.devices[assignment.rank].value(), ": ", note));
      }
    }
    DeviceBackend* const backend = options_.backend != nullptr ? options_.backend : backend_.get();
    backend->SetMemoryCap(assignment.device.memory_bytes, assignment.devices[assignment.rank].value());
    return backend;
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const RankAssignment& assignment, DeviceBackend& backend,
                                                        const std::string& purpose, const std::set<int>& more_peers = {}) {
    if (links_ == nullptr) {
      MOTLEY_ASSIGN_OR_RETURN(links_, LinkClock::Map(options_.link_clock_fd));
    }
    CommunicatorOptions options;
    options.rank = assignment.rank;
    options.devices = assignment.devices;
    options.data_addresses = assignment.data_addresses;
    options.device = assignment.device;
    options.authentication = options_.authentication;
    for (size_t lane = 0; lane < kNumLanes; ++lane) {
      const DeviceStream* const stream = backend.StreamOf(static_cast<Lane>(lane));
      if (stream != nullptr) options.streams[lane] = stream->handle();
    }
    options.memory = backend.memory();
    options.nccl.api = backend.nccl();
    options.nccl.multiprocessors = backend.multiprocessors();
    if (NcclLogFile* const log = backend.nccl_log(); log != nullptr)
      options.nccl.new_links = [log](bool is_pair) { return log->NewLinks(is_pair); };
    if (options.nccl.api != nullptr) {
      MOTLEY_ASSIGN_OR_RETURN(const Precision precision, PrecisionOf(assignment.config.training));
      options.nccl.types = {precision.compute};
      if (precision.mixed()) options.nccl.types.push_back(precision.master);
    }
    AddPeers(assignment, options);
    options.sends_to.insert(more_peers.begin(), more_peers.end());
    options.receives_from.insert(more_peers.begin(), more_peers.end());
    options.key_prefix = absl::StrCat(purpose, assignment.epoch.value(), "/");
    options.stopped = [this] { return stop_.stop.load(); };
    options.deadline = std::max(options.deadline, absl::Seconds(20 * assignment.predicted_step_seconds));
    return ConnectCommunicator(options, host_, *links_);
  }

  RankHost& host_;
  const EngineOptions options_;
  StopRequest stop_;
  std::unique_ptr<LinkClock> links_;
  std::unique_ptr<DeviceBackend> backend_;
};

}  // namespace

absl::StatusOr<std::string> NcclVersion() {
  PrepareNcclEnvironment("");
  MOTLEY_ASSIGN_OR_RETURN(const NcclLibrary nccl, OpenTorchsNccl());
  MOTLEY_RETURN_IF_ERROR(CheckNcclMakesIds(nccl));
  MOTLEY_RETURN_IF_ERROR(TryNcclOnACard(nccl));
  return NcclVersionText(nccl.version);
}

std::unique_ptr<Engine> CreateEngine(RankHost& host, const EngineOptions& options) {
  return std::make_unique<EngineImpl>(host, options);
}

}  // namespace motley::engine
