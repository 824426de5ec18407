// Trains a job in this process, ranks as threads, and keeps everything that it computed.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/session/assignment.h"
#include "worker/engine/base/rank_host.h"

namespace motley::engine {

// [unit of the model][StateTensor]: the flat arrays of a checkpoint.
using TrainingState = std::vector<std::vector<std::vector<double>>>;

// What the ranks run on: threads of the host; cards that are not there (fake_card.h), which meet by a fake NCCL or through the
// host; every third rank a CPU, the others such cards with NCCL; cards of which every third has no kernels of our own; the
// machine's first card, which all ranks share; every third rank a CPU, the others on that card.
enum class Devices { kHosts, kCards, kCardsOverTcp, kCardsAndHosts, kCardsWithKernels, kOneCard, kOneCardAndHosts };

struct TrainingRun {
  std::vector<StepResult> steps;
  std::map<int64_t, TrainingState> states;  // by steps done
  std::vector<int64_t> peak_bytes;          // by rank, of the fullest step; on cards that are not there as issued
  std::vector<int64_t> host_bytes;          // by rank: of the host's memory
};

struct Checkpoints {
  std::vector<StepResult> steps;
  std::map<int64_t, std::string> folders;  // by steps done
  std::vector<int64_t> peak_bytes;         // as above
  std::vector<int64_t> host_bytes;         // likewise
  std::vector<MeasuredMemory>
      memory;  // by rank, by purpose: of each the fullest step but the first, in which homes take shards in
};

// All ranks of one job, which writes checkpoints into an empty folder of its own. With `delays`, a seed, a quarter of the
// instructions begin up to 2 ms late, whichever lane they are on. `overflowing_step`, from 0: on one rank that has the head the
// gradient is too large for its type; -1: in none. The first rank's error; INTERNAL: ranks that report other numbers than rank 0.
absl::StatusOr<Checkpoints> TrainAndKeep(const std::vector<RankAssignment>& assignments, std::optional<uint64_t> delays,
                                         Devices devices = Devices::kHosts, int64_t overflowing_step = -1);
// The same; reads the checkpoints and removes them.
absl::StatusOr<TrainingRun> TrainOnThreads(const std::vector<RankAssignment>& assignments,
                                           std::optional<uint64_t> delays = std::nullopt, Devices devices = Devices::kHosts,
                                           int64_t overflowing_step = -1);

// The same number, or none both: a skipped step has no norm.
inline bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// How long an instruction of a rank is kept waiting.
absl::Duration DelayOf(uint64_t seed, int rank, int64_t instruction);

absl::StatusOr<TrainingState> ReadState(const std::string& checkpoint_folder);

}  // namespace motley::engine
