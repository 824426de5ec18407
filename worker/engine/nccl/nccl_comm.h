// One NCCL communicator: made, given calls, watched and ended without ever blocking in NCCL. docs/inside/nccl.md
//
// Threads: one at a time makes calls; Health and Abort may come from any. Threads with communicators of one card take turns at
// putting calls on its streams: NCCL calls it unsafe to do so in parallel.
//
// A rank with several ends them together (nccl_mesh.h): NCCL's ends wait for the whole card and for other ranks'.
//
// Errors: UNAVAILABLE, Fault::kPeer: NCCL lost a member, or was aborted; Fault::kOurs: it calls the calls wrong. Each names the
// communicator and its members, and says what NCCL says.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/engine/nccl/nccl_api.h"

namespace motley::engine {

// How long NCCL is waited for, and what is asked meanwhile: an error ends the wait with it.
struct NcclPatience {
  absl::Duration deadline;
  std::function<absl::Status()> check;  // may be null
};

struct NcclMembership {
  std::string label;  // "train/group-3": what NCCL's own log calls it
  std::string name;   // "group 3 (n0/gpu0, n1/gpu0)": for messages
  ncclUniqueId id{};
  int ranks = 0, rank = 0;
  // How many of a card's multiprocessors its kernels may take; the same on all members. 0: as many as NCCL likes.
  int most_ctas = 0;
};

class NcclComm {
 public:
  // Waits until all members have made it. `turn`: the card's, held while calls are enqueued; outlives the communicator.
  static absl::StatusOr<std::unique_ptr<NcclComm>> Make(const NcclApi& api, NcclMembership membership, absl::Mutex& turn,
                                                        const NcclPatience& patience);
  // Finalizes, if nobody has, and gives it back; what does not end within a limit is aborted.
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Runs `calls` as one NCCL group and returns when NCCL has put them all on their streams; not when they are done.
  absl::Status Enqueue(const std::function<ncclResult_t(ncclComm_t)>& calls, const NcclPatience& patience);
  // What NCCL has noticed since.
  absl::Status Health();
  // Ends what it has on streams. Once; later calls do nothing.
  void Abort();
  // Abort in two parts, for several communicators at once. True: it was not over, and nobody is in a call, so TakeAway is due.
  bool MarkOver();
  void TakeAway();
  // The orderly end's first half: no call comes any more, what was enqueued is done. Begin it on all before any is awaited.
  void BeginFinalize();

  const std::string& name() const { return membership_.name; }

 private:
  NcclComm(const NcclApi& api, NcclMembership membership, absl::Mutex& turn)
      : api_(api), membership_(std::move(membership)), turn_(turn) {}

  absl::Status PutOnStream(const std::function<ncclResult_t(ncclComm_t)>& calls, const NcclPatience& patience);
  absl::Status AwaitIdle(const char* what, const NcclPatience& patience);
  absl::StatusOr<ncclResult_t> State();
  absl::Status ErrorOf(const char* what, ncclResult_t result) const;

  const NcclApi api_;
  const NcclMembership membership_;
  absl::Mutex& turn_;          // neither an abort nor a look at the health takes it
  ncclComm_t comm_ = nullptr;  // constant from Make to Abort or the end
  absl::Mutex mutex_;          // not held during a call: Abort is to end it
  bool in_call_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  bool finalizing_ = false;  // of the thread that ends it
};

// Polls `done` until it says true, with growing pauses. UNAVAILABLE: `what` took longer than the patience. Errors of `done` and
// of the check.
absl::Status PollUntil(const std::string& what, const NcclPatience& patience, const std::function<absl::StatusOr<bool>()>& done);

}  // namespace motley::engine
