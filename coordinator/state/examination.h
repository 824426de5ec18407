// One look at the cluster as it is now, asked for by CheckCluster: whether the nodes reach each other, how fast, and whether they
// see the same paths. What is found is judged in state/examination_findings.
//
// Pure: Advance(now, state, examination) says what to send next; members/examiner sends it and files the answers. Every stage has
// a limit, so an examination ends whatever the workers do. What they say is untrusted: an answer counts only from a node that was
// asked, for the question that is open, and about ways of its own.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/session/session.h"
#include "coordinator/state/ways.h"

namespace motley::coordinator {

struct ClusterState;

struct ExaminationRequest {
  std::string data_path, checkpoint_folder;  // empty: not looked at
  bool rates_beside_job = false;
  std::string validation_path = {}, initial = {};

  bool HasData() const { return !data_path.empty() || !validation_path.empty() || !initial.empty(); }  // that nodes read
  bool HasPaths() const { return HasData() || !checkpoint_folder.empty(); }
};

// Limits of stages, for workers that do not answer.
struct ExaminationLimits {
  absl::Duration reach = absl::Seconds(10);  // workers try for 3 s
  absl::Duration round = absl::Seconds(8);   // 3 s to connect, 3 s to send
  absl::Duration rates = absl::Seconds(30);  // all rounds: bursts are allowed for a minute
  absl::Duration write = absl::Seconds(30);
  absl::Duration read = absl::Seconds(30);  // without data; a reader waits 10 s for what another wrote
  absl::Duration read_data = absl::Seconds(120);
};

// Above this many nodes only a ring of them is measured.
inline constexpr size_t kMostForAllRates = 16;
// Above one more than this many each node tries only so many others.
inline constexpr size_t kMostTargets = 127;

enum class ExaminationStage { kBegin, kReach, kRates, kWriting, kReading, kDone };

struct WayAnswer {
  bool answered = false;
  std::string error;  // empty: reached
  double connect_seconds = 0;
  double bytes_per_second = 0;  // 0: not measured
  std::string burst_error;      // why not, where it was tried
  std::string other_card;       // why bytes may leave by another card than the data address's; empty: they do not
};

struct Examination {
  ExaminationRequest request;
  ExaminationLimits limits;
  std::string id;      // "doctor-3f2a91bc"; its messages' check_id begin with it
  std::string secret;  // for bursts
  ExaminationStage stage = ExaminationStage::kBegin;
  absl::Duration begun, since;  // of the examination; of the stage or round
  absl::Duration rates_since;
  std::map<NodeName, int64_t> nodes;  // connected at its begin, with their incarnations
  std::set<NodeName> waiting;         // asked, and not answered yet
  std::map<Way, WayAnswer> ways;      // tried
  std::set<NodeName> gone;            // lost since it began
  std::set<NodeName> silent;          // did not say whom they reach
  std::vector<Round> rounds;
  size_t round = 0;
  std::string rates_left_out;                 // why all or some rates were not measured; empty: they were
  std::map<NodeName, StorageReport> written;  // answers; of `nodes`, in order, each writes a token of its own
  std::map<NodeName, StorageReport> read;
  NodeName writer;  // whose token all read; empty: nobody's
};

using Messages = std::vector<std::pair<NodeName, CoordinatorCommand>>;

// What to send now, after a change of the examination and from time to time; it may have come to its end.
Messages Advance(absl::Duration now, const ClusterState& state, Examination& examination);
// What to send when nobody waits for it any more, and at its end: nodes forget its checks and remove its tokens.
Messages Forget(const Examination& examination);

// False: dropped, because it is no answer to what is open.
bool FileReach(const NodeName& node, const ReachReport& report, Examination& examination);
bool FileStorage(const NodeName& node, const StorageReport& report, Examination& examination);

// "measuring the links, round 2 of 6, waiting for b (3 s)".
std::string Doing(absl::Duration now, const Examination& examination);

}  // namespace motley::coordinator
