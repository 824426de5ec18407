// The collectives of one epoch's ranks, over arrays that ranks own in uneven pieces (docs/collectives.md).
//
// One thread at a time calls the collectives, every rank in the same order with the same bounds; Abort may come from any
// thread. Emulated links keep their times in pacer(): the lane that the calls run on says there when their data was there, and
// reads when their result was. So the host's wake-up delays stay out of the schedule; no call returns earlier than its scheduled
// end.
//
// Errors: UNAVAILABLE after a lost peer, an abort or the deadline. The communicator is dead then: destroy it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/dtype.h"
#include "worker/engine/transport/transfer_pacer.h"

namespace motley::engine {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;

  // `array` holds bounds.back() elements, rank r's own range [bounds[r], bounds[r+1]) filled in; all of it on return.
  virtual absl::Status AllGatherV(void* array, DType dtype, const std::vector<int64_t>& bounds) = 0;
  // Sums `array` over ranks. On return the rank's own range holds the sum, the rest is scratch.
  virtual absl::Status ReduceScatterV(void* array, DType dtype, const std::vector<int64_t>& bounds) = 0;
  // Everybody's scalars, by rank; the same number of them on every rank.
  virtual absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) = 0;
  // Everybody's text, by rank. Of any length.
  virtual absl::StatusOr<std::vector<std::string>> GatherStrings(const std::string& mine) = 0;
  // Ends the call under way and all later ones with UNAVAILABLE and this reason; peers see the connections close.
  virtual void Abort(const std::string& reason) = 0;

  TransferPacer& pacer() { return pacer_; }
  // Called whenever bytes have moved, from the thread that runs the collective.
  void set_progress(std::function<void()> progress) { progress_ = std::move(progress); }
  // How late the host completed emulated transfers, in all.
  double lateness_seconds() const { return lateness_seconds_; }

 protected:
  SystemClock clock_;
  TransferPacer pacer_{clock_};
  std::function<void()> progress_;
  double lateness_seconds_ = 0;
};

}  // namespace motley::engine
