// One training step as tasks on lanes: what the simulator runs. Programs become one (planner/graph/program_graph),
// also those that the engine does not run yet. A plain value.
//
// A task starts when it is at the head of all its lanes, the lanes are free, and every task of `after` has ended. A lane runs its
// tasks in the order of the vector. Compute tasks last `duration`; transfers last until the simulator has carried their loads,
// sharing every link max-min fairly with the other transfers in flight. This is the one readiness rule.
//
// Ranks that behave alike (same kind, duty and peers) are one *actor* with a count, so that 512 ranks take milliseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "common/program/operation_traits.h"
#include "planner/cluster/links.h"

namespace motley::planner {

using Picoseconds = int64_t;
inline constexpr double kPicosecondsPerSecond = 1e12;
Picoseconds ToPicoseconds(double seconds);  // rounded to nearest, saturating
inline double ToSeconds(Picoseconds ps) { return static_cast<double>(ps) / kPicosecondsPerSecond; }

enum class TaskKind {
  kForward,
  kRecompute,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kOptimizer,  // the last that computes
  kGather,
  kReduceScatter,
  kAllReduce,
  kScalars,
  kSend,
  kOffload,
  kPrefetch,
  kWait,  // stays the last
};
inline constexpr size_t kNumTaskKinds = static_cast<size_t>(TaskKind::kWait) + 1;
std::string_view TaskName(TaskKind kind);
inline bool IsCompute(TaskKind kind) { return kind <= TaskKind::kOptimizer; }

std::string_view LaneName(Lane lane);
// An actor's lane.
inline int32_t LaneIndex(int actor, Lane lane) { return actor * kNumLanes + static_cast<int32_t>(lane); }

struct Actor {
  std::string name;  // "n1/gpu0" or "n1/gpu0 and 7 like it"
  int pipeline = 0, stage = 0;
  int count = 1;     // ranks it stands for
  int device = 0;    // of the first of them, into the cluster (or the rank)
  std::string unit;  // the tensor-parallel unit, whose actors are neighbours: "n1/gpu0+n2/gpu0 (tp 0.75/0.25)"; empty = none
};

// Lanes or tasks by number: nearly always one to four, which take no memory of their own.
using IndexList = absl::InlinedVector<int32_t, 4>;

struct Task {
  TaskKind kind = TaskKind::kForward;
  IndexList lanes;                     // LaneIndex; several: a collective that all must have reached
  Picoseconds duration = 0;            // compute; for transfers what is spent beyond the loads (latency)
  std::vector<LinkLoad> loads;         // of a transfer; empty = compute or a measured duration
  IndexList after;                     // tasks, each less than this one's index
  int32_t unit = -1, microbatch = -1;  // for people: unit of the model (or first layer of the ministage), microbatch
};

// For people: "forward 3.1" is of unit 3 and microbatch 1.
std::string TaskLabel(const Task& task);

struct StepGraph {
  std::vector<Actor> actors;
  std::vector<Task> tasks;
  std::vector<double> link_bytes_per_second;  // by resource of the loads
};

struct TaskSpan {
  Picoseconds begin = 0, end = 0;
};
struct Timeline {
  std::vector<TaskSpan> spans;  // by task
  Picoseconds end = 0;
  std::vector<Picoseconds> busy;  // by lane: sum of its tasks' spans
};

// Stragglers: some actors' compute runs slower. A seed gives the same stragglers every time.
struct Stragglers {
  uint64_t seed = 0;
  double part = 0;      // of the actors, rounded up, 0 = none; 0..1
  double slowdown = 1;  // their compute lasts this many times longer; > 0
};

// Pure and deterministic; equal inputs give equal picoseconds. A transfer is latency first (its duration), then its loads.
// FAILED_PRECONDITION: a deadlock; lists every stuck lane, its task and what it waits for. INVALID_ARGUMENT: lanes, tasks or
// links that do not exist, negative or infinite numbers; names the task.
absl::StatusOr<Timeline> Run(const StepGraph& graph, const Stragglers& stragglers = {});

}  // namespace motley::planner
