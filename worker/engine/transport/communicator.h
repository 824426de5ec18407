// The collectives of one epoch's ranks, over arrays that ranks own in uneven pieces (docs/collectives.md).
//
// One thread at a time calls the collectives, every rank in the same order with the same bounds; Abort may come from any
// thread. `ready` and the returned time belong to the emulated schedule (CLOCK_MONOTONIC): when the call's data was there,
// and when its result was. A caller that passes them on keeps the host's wake-up delays out of the schedule; the real
// time of return is never earlier than the returned one.
//
// Errors: UNAVAILABLE after a lost peer, an abort or the deadline. The communicator is dead then: destroy it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/dtype.h"

namespace motley::engine {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;

  // `array` holds bounds.back() elements, rank r's own range [bounds[r], bounds[r+1]) filled in; all of it on return.
  virtual absl::StatusOr<absl::Duration> AllGatherV(void* array, DType dtype, const std::vector<int64_t>& bounds,
                                                    absl::Duration ready) = 0;
  // Sums `array` over ranks. On return the rank's own range holds the sum, the rest is scratch.
  virtual absl::StatusOr<absl::Duration> ReduceScatterV(void* array, DType dtype, const std::vector<int64_t>& bounds,
                                                        absl::Duration ready) = 0;
  // Everybody's scalars, by rank; the same number of them on every rank.
  virtual absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) = 0;
  // Everybody's text, by rank. Of any length.
  virtual absl::StatusOr<std::vector<std::string>> GatherStrings(const std::string& mine) = 0;
  // Ends the call under way and all later ones with UNAVAILABLE and this reason; peers see the connections close.
  virtual void Abort(const std::string& reason) = 0;

  // Called whenever bytes have moved, from the thread that runs the collective.
  void set_progress(std::function<void()> progress) { progress_ = std::move(progress); }
  // How late the host completed emulated transfers, in all.
  double lateness_seconds() const { return lateness_seconds_; }

 protected:
  std::function<void()> progress_;
  double lateness_seconds_ = 0;
};

}  // namespace motley::engine
