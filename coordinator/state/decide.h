// What the job that has the cluster does next: Decide(now, state, config) -> {action, reason}. Pure: no clock, no lock, no
// I/O. jobs/epoch_driver applies the action and asks again until nothing is to be done.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/state/cause.h"
#include "coordinator/state/cluster.h"
#include "coordinator/state/examination.h"
#include "coordinator/state/flapping.h"
#include "coordinator/state/second_reader.h"

namespace motley::coordinator {

inline constexpr char kPlanningReason[] = "looking for the newest checkpoint, then planning";

struct DriverConfig {
  CauseConfig cause;
  ProbeConfig probe;
  ExaminationLimits examination;
  FlappingConfig flapping;
  absl::Duration settle = absl::Seconds(1);             // joins within this time make one replan
  absl::Duration storage_timeout = absl::Seconds(300);  // digesting the data on the slowest node
  absl::Duration profile_timeout = absl::Seconds(900);
  absl::Duration planning_timeout = absl::Minutes(10);  // and for the look into the checkpoint folder before it
  absl::Duration look_patience = absl::Seconds(10);     // then it is said that the folder does not answer
  // Until every rank is ready. Beside it the run grants time to read its checkpoint: a worker sees a rank that hangs; this is for
  // a start that nobody answers.
  absl::Duration starting_timeout = absl::Seconds(120);
  int64_t slowest_restore_bytes_per_second = 10'000'000;
  // In a swap the job stands still. Its ranks meet within the first, and measure their collectives within the second from then
  // on, or the plan is made with predicted ones; the third is for planning and for starting.
  absl::Duration meet_timeout = absl::Seconds(10);
  absl::Duration collectives_timeout = absl::Seconds(5);
  absl::Duration swap_timeout = absl::Seconds(60);
  absl::Duration save_timeout = absl::Seconds(120);  // finishing a step and writing a checkpoint
  // A job that waits for devices lets others have the cluster after so long: a worker that is started anew is back sooner.
  absl::Duration lend_after = absl::Seconds(10);
  absl::Duration kill_timeout = absl::Seconds(10);  // after it the rank is taken for gone: the epoch number fences it
  int max_deaths = 3;                               // of a device's rank in a row, then it is left out
  int max_first_deaths = 6;                         // of ranks in a row, in a job that has never made a step: it cannot run
};

// Nothing to do now; the reason says what is waited for (empty: keep the last one).
struct KeepOn {
  bool lends = false;  // as of Wait: for a folder that does not answer, which may still do so
};
struct Wait {
  bool lends = false;  // for devices, or a folder: others may have the cluster meanwhile (lending.h)
};                     // -> WAITING
struct Yield {};       // nothing runs: back into the queue, for a job whose devices are back
struct BeginSetup {
  std::vector<DeviceDescription> devices;
};                       // new epoch number, storage check
struct AbandonSetup {};  // no processes run yet: back to idle
struct LeaveOutNodes {
  std::map<NodeName, std::string> nodes;
};  // of this job, with why: they see other data or another folder
struct LeaveOutDevices {
  std::vector<DeviceId> devices;
};  // of this job: with them there is no plan, and without them there is one
struct LeaveOutUnreached {
  std::map<NodeName, std::string> nodes;  // with why: not by all others
};
struct RefuseNewcomers {};  // the job goes on with the nodes that it trained with before; back to idle
struct AskSecondReader {
  NodeName node;
};  // reads the checkpoint that is suspected
struct JudgeCheckpoint {
  Verdict verdict;
};
struct RequestProfiles {};
struct PredictCollectives {};  // they take too long to measure: the ranks that do are ended, and the plan is made without
struct PreparePlan {};
struct RetryLater {
  bool folder = false;  // the coordinator cannot look into it: waited for until it can
};                      // planning failed for now: back to idle, and a pause
struct StartRanks {};
struct MarkRunning {};
struct EndEpoch {
  bool save;
  Ending ending;
  std::string cause_label;
  std::optional<Failure> failure;
  std::set<NodeName> blamed = {};  // newcomers without which the job goes on
};
struct KillEpoch {
  std::optional<Failure> failure;
};                     // saving did not work out
struct EpochEnded {};  // every rank is gone
struct Finish {
  JobPhase phase;
  absl::StatusCode error_code = absl::StatusCode::kOk;  // of a failure whose kind is known
};
using JobAction = std::variant<KeepOn, Wait, Yield, BeginSetup, AbandonSetup, LeaveOutNodes, LeaveOutDevices, LeaveOutUnreached,
                               RefuseNewcomers, AskSecondReader, JudgeCheckpoint, RequestProfiles, PredictCollectives,
                               PreparePlan, RetryLater, StartRanks, MarkRunning, EndEpoch, KillEpoch, EpochEnded, Finish>;

struct Decision {
  JobAction action;
  std::string reason;
};

// Call only while state.run is set.
Decision Decide(absl::Duration now, const ClusterState& state, const DriverConfig& config);
// What a job that was put aside would do now if it had the cluster. Newcomers, which it has not looked at, count as usable.
Decision DecideAside(absl::Duration now, const ClusterState& state, const JobRun& run, const DriverConfig& config);

}  // namespace motley::coordinator
