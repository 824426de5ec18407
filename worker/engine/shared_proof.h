// What all ranks of a generation know together of their data: whether every node has compared its own with the digests. One rank
// of each node compares (data_prover.h); what the others await, and whether a stop leaves time for it, all decide alike. One
// thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/data/dataset.h"
#include "common/data/known_parts.h"
#include "common/session/assignment.h"
#include "worker/engine/data_prover.h"
#include "worker/engine/engine.h"
#include "worker/engine/progress_meter.h"
#include "worker/engine/transport/communicator.h"

namespace motley::engine {

// Of a stop, at most: the coordinator gives it 120 s, and the checkpoint takes its share.
inline constexpr absl::Duration kLongestProofAtStop = absl::Seconds(90);

// How far a comparison is, by what all ranks say of it. Pure.
struct ProofRound {
  bool over = true, touched = false, stop = false;
  int64_t bytes = 0, all_bytes = 0;  // of the rank that has the longest way
  absl::Duration left;               // of it; infinite: it does not move
  absl::Duration unsaved;            // the time of the steps that nobody has saved, by rank 0

  std::vector<double> ToVector() const;
  static ProofRound Of(const std::vector<std::vector<double>>& by_rank);
  // To be told to stop, and to make those steps again takes no longer than what is left.
  bool is_not_worth_it() const { return stop && !over && left > std::min(unsaved, kLongestProofAtStop); }
  // "comparing the data (37 %, about 40 s left)"
  std::string Text() const;
};

class SharedProof {
 public:
  // All must outlive it.
  SharedProof(const RankAssignment& assignment, const EngineOptions& options, Communicator& communicator,
              ProgressMeter& progress);

  // Once the data are open: compares what is not proven.
  void Begin(std::vector<const Dataset*> data);
  // By all ranks: compares all data once more. With `afresh` also what is known.
  void Again(bool afresh);

  // What this rank found so far; never waits. Errors as of DataProver.
  absl::Status Found() const { return prover_ == nullptr ? absl::OkStatus() : prover_->Found(); }
  // Whether this rank noticed in its reads that a file was altered, and nobody knows whether in its contents.
  absl::StatusOr<bool> TakeTouched() { return Touched(false); }
  bool awaited() const { return awaited_; }

  // By all ranks together. OK on all of them once all nodes have compared; at once if they had.
  absl::Status Await();
  // The same; false on all of them where a stop is wished and awaiting it is of no use. `stops` is asked again and again;
  // `unsaved`: rank 0's.
  absl::StatusOr<bool> AwaitUnlessStopped(absl::Duration unsaved, const std::function<bool()>& stops);
  // By all ranks, of rows of which each found so many tokens that are trained on: always an error, and that of the node whose
  // data are not what was prepared, if there is one.
  absl::Status NothingCommonToTrain(const std::vector<int64_t>& trained, const std::string& rows, const std::string& remedy);

 private:
  absl::StatusOr<bool> Touched(bool look);
  absl::StatusOr<ProofRound> Exchange(absl::Duration unsaved, bool stops);

  const RankAssignment& assignment_;
  const EngineOptions& options_;
  Communicator& communicator_;
  ProgressMeter& progress_;
  KnownParts known_;
  std::vector<const Dataset*> data_;
  bool awaited_ = false;                // the same on every rank
  std::unique_ptr<DataProver> prover_;  // null: there is nothing to compare, or another rank does
};

}  // namespace motley::engine
