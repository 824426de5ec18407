// The data traffic of one epoch's ranks: collectives of groups, over arrays that the members own in uneven pieces, and hand-overs
// from rank to rank (docs/inside/collectives.md).
//
// Threads: one at a time calls the collectives and the gathers, one sends, one receives, all three side by side; Abort may come
// from any. Every member of a group calls its collectives in the same order with the same owners, and a rank in several groups
// calls those of all of them in an order that the others' agrees with. What a rank sends to a peer, the peer receives in the same
// order.
//
// Emulated links keep their times in three pacers, one for each of these lanes: the lane that the calls run on says there when
// their data was there, and reads when their result was. So the host's wake-up delays stay out of the schedule; no call returns
// earlier than its scheduled end.
//
// Errors: UNAVAILABLE after a lost peer, an abort or the deadline. The communicator is dead then: destroy it. INTERNAL: a group
// or peer that the options do not name for this rank, or other than one list of ranges for each member; nothing was sent then.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/dtype.h"
#include "common/program/operation.h"
#include "common/session/transport_use.h"
#include "worker/engine/transport/transfer_pacer.h"

namespace motley::engine {

// Elements [begin, end).
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

// What each member of a group owns of an array, in the group's order: ascending, disjoint ranges; none is legal. What nobody owns
// is not touched.
using Owners = std::vector<std::vector<ElementRange>>;

// Member i owns [bounds[i], bounds[i + 1]).
Owners OwnersOf(const std::vector<int64_t>& bounds);
// As even as whole elements go.
Owners EvenOwners(int64_t elements, int members);
// Of all members together.
int64_t ElementsOf(const Owners& owners);

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;

  // `group`: an index into CommunicatorOptions::groups; this rank is a member. The rank's own ranges of `array` are filled in;
  // all ranges on return.
  virtual absl::Status AllGather(int group, void* array, DType dtype, const Owners& owners) = 0;
  // Sums `array` over the members, in float32 or float64. On return the rank's own ranges hold the sum, the others' are scratch.
  virtual absl::Status ReduceScatter(int group, void* array, DType dtype, const Owners& owners) = 0;

  // Sums all of `array` over the members, in its own type. On return it is the same on all of them to the last bit.
  virtual absl::Status AllReduce(int group, void* array, DType dtype, int64_t elements) = 0;

  // A hand-over: blocks until the peer has taken all bytes, or all of them have come. Whoever is first waits for the other.
  virtual absl::Status Send(int peer, const void* data, int64_t bytes) = 0;
  virtual absl::Status Receive(int peer, void* data, int64_t bytes) = 0;

  // Everybody's scalars, by rank; the same number of them on every rank.
  virtual absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) = 0;
  // Everybody's text, by rank. Of any length.
  virtual absl::StatusOr<std::vector<std::string>> GatherStrings(const std::string& mine) = 0;
  // Where the bytes of a group of this rank go, and those of its hand-overs. NCCL wants arrays on the card, TCP in host memory.
  virtual Transport TransportOf(int group) const = 0;
  virtual Transport TransportTo(int peer) const = 0;
  virtual Transport TransportFrom(int peer) const = 0;
  // How NCCL moves them; none: it does not, or nobody knows.
  virtual std::optional<NcclLinks> NcclLinksOf(int /*group*/) const { return std::nullopt; }
  virtual std::optional<NcclLinks> NcclLinksTo(int /*peer*/) const { return std::nullopt; }
  // Makes the room that this lane's largest call will want, on the host or elsewhere. To be called between steps: making it may
  // wait for all that the device was given, and in a step something may be given that waits for this rank's next call.
  virtual absl::Status Reserve(Lane, int64_t) { return absl::OkStatus(); }
  // The same for what a collective with these owners wants besides.
  virtual absl::Status ReserveCollective(int /*group*/, DType, const Owners&) { return absl::OkStatus(); }
  // What this rank says of them for all (transport_report.h). Set before any call.
  const std::vector<TransportUse>& transports() const { return transports_; }
  void set_transports(std::vector<TransportUse> transports) { transports_ = std::move(transports); }
  // Whether calls of this lane return with their work done. Else it is in the lane's stream then (CommunicatorOptions::streams).
  virtual bool Blocks(Lane) const { return true; }
  // Asked while streams are awaited, from the thread that gives them work: whether everybody whom they wait for is well.
  virtual absl::Status Health() { return absl::OkStatus(); }
  // Ends the calls under way and all later ones with UNAVAILABLE and this reason; peers see the connections close.
  virtual void Abort(const std::string& reason) = 0;

  TransferPacer& collective_pacer() { return collective_pacer_; }
  TransferPacer& send_pacer() { return send_pacer_; }
  TransferPacer& receive_pacer() { return receive_pacer_; }
  // Called whenever bytes have moved (NCCL: were given to a stream), from the thread of the call: from three at once. Set before
  // any call.
  void set_progress(std::function<void()> progress) { progress_ = std::move(progress); }
  // How late the host completed emulated transfers, in all. Thread-safe.
  virtual double lateness_seconds() const { return lateness_seconds_; }

 protected:
  SystemClock clock_;
  TransferPacer collective_pacer_{clock_}, send_pacer_{clock_}, receive_pacer_{clock_};
  std::function<void()> progress_;
  std::vector<TransportUse> transports_;
  std::atomic<double> lateness_seconds_{0};
};

}  // namespace motley::engine
