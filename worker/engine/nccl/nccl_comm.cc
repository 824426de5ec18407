#include "worker/engine/nccl/nccl_comm.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

// Most calls are on their stream at the second or third look.
constexpr int kLooksAtOnce = 50;
constexpr absl::Duration kShortestPause = absl::Microseconds(20), kLongestPause = absl::Milliseconds(1);
// Non-blocking calls return at once. One that does not is what an abort must end.
constexpr absl::Duration kCallsLeaveWithin = absl::Milliseconds(50);
constexpr absl::Duration kFinalizedWithin = absl::Seconds(5);
constexpr char kMaking[] = "making its communicator";

// The rest may follow from a lost peer, and what repeats shows by itself.
Fault FaultOfResult(ncclResult_t result) {
  return result == ncclInvalidArgument || result == ncclInvalidUsage ? Fault::kOurs : Fault::kPeer;
}

}  // namespace

absl::Status PollUntil(const std::string& what, const NcclPatience& patience, const std::function<absl::StatusOr<bool>()>& done) {
  const absl::Time deadline = absl::Now() + patience.deadline;
  absl::Duration pause = kShortestPause;
  for (int looks = 0;; ++looks) {
    MOTLEY_ASSIGN_OR_RETURN(const bool is_done, done());
    if (is_done) return absl::OkStatus();
    if (looks < kLooksAtOnce) {
      std::this_thread::yield();
      continue;
    }
    if (patience.check) MOTLEY_RETURN_IF_ERROR(patience.check());
    if (absl::Now() > deadline) {
      return WithFault(absl::UnavailableError(absl::StrCat(what, ": nothing came for ", absl::FormatDuration(patience.deadline))),
                       Fault::kPeer);
    }
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

absl::StatusOr<std::unique_ptr<NcclComm>> NcclComm::Make(const NcclApi& api, NcclMembership membership, absl::Mutex& turn,
                                                         const NcclPatience& patience) {
  std::unique_ptr<NcclComm> made(new NcclComm(api, std::move(membership), turn));
  ncclConfig_t config;
  config.blocking = 0;
  config.commName = made->membership_.label.c_str();
  const NcclMembership& m = made->membership_;
  if (m.most_ctas > 0) config.maxCTAs = m.most_ctas;
  const ncclResult_t result = api.ncclCommInitRankConfig(&made->comm_, m.ranks, m.id, m.rank, &config);
  const bool begun = result == ncclSuccess || result == ncclInProgress;
  const absl::Status ready = begun ? made->AwaitIdle(kMaking, patience) : made->ErrorOf(kMaking, result);
  if (ready.ok()) return made;
  made->Abort();
  return ready;
}

void NcclComm::BeginFinalize() {
  {
    absl::MutexLock lock(&mutex_);
    if (over_ || comm_ == nullptr || finalizing_) return;
  }
  const ncclResult_t result = api_.ncclCommFinalize(comm_);
  finalizing_ = result == ncclSuccess || result == ncclInProgress;
  if (!finalizing_) Abort();
}

NcclComm::~NcclComm() {
  BeginFinalize();
  if (finalizing_ && !AwaitIdle("ending its communicator", {kFinalizedWithin, nullptr}).ok()) Abort();
  {
    absl::MutexLock lock(&mutex_);
    if (comm_ == nullptr || std::exchange(over_, true)) return;
  }
  api_.ncclCommDestroy(comm_);
}

absl::Status NcclComm::Enqueue(const std::function<ncclResult_t(ncclComm_t)>& calls, const NcclPatience& patience) {
  MOTLEY_RETURN_IF_ERROR(PutOnStream(calls, patience));
  const ncclResult_t result = api_.await_enqueued != nullptr ? api_.await_enqueued() : ncclSuccess;
  if (result == ncclSuccess) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return over_ ? ErrorOf("aborted", ncclSuccess) : ErrorOf("call refused", result);
}

absl::Status NcclComm::PutOnStream(const std::function<ncclResult_t(ncclComm_t)>& calls, const NcclPatience& patience) {
  // In a step nobody waits for a peer in here: all are connected. An abort ends whoever holds the turn.
  absl::MutexLock turn(&turn_);
  {
    absl::MutexLock lock(&mutex_);
    if (over_) return ErrorOf("aborted", ncclSuccess);
    in_call_ = true;
  }
  ncclResult_t result = api_.ncclGroupStart();
  if (result == ncclSuccess) {
    const ncclResult_t called = calls(comm_);
    // Also after an error: the group must be closed.
    result = api_.ncclGroupEnd();
    if (called != ncclSuccess && called != ncclInProgress) result = called;
  }
  {
    absl::MutexLock lock(&mutex_);
    in_call_ = false;
    if (over_) return ErrorOf("aborted", ncclSuccess);
  }
  if (result != ncclSuccess && result != ncclInProgress) return ErrorOf("call refused", result);
  return AwaitIdle("enqueuing", patience);
}

absl::Status NcclComm::Health() {
  MOTLEY_ASSIGN_OR_RETURN(const ncclResult_t state, State());
  return state == ncclSuccess || state == ncclInProgress ? absl::OkStatus() : ErrorOf("failed", state);
}

void NcclComm::Abort() {
  if (MarkOver()) TakeAway();
}

bool NcclComm::MarkOver() {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(over_, true) || comm_ == nullptr) return false;
  const auto out = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !in_call_; };
  mutex_.AwaitWithTimeout(absl::Condition(&out), kCallsLeaveWithin);
  return true;
}

void NcclComm::TakeAway() { api_.ncclCommAbort(comm_); }

absl::Status NcclComm::AwaitIdle(const char* what, const NcclPatience& patience) {
  return PollUntil(absl::StrCat("NCCL of ", name(), ": ", what), patience, [&]() -> absl::StatusOr<bool> {
    MOTLEY_ASSIGN_OR_RETURN(const ncclResult_t state, State());
    if (state == ncclInProgress) return false;
    if (state == ncclSuccess) return true;
    return ErrorOf(what, state);
  });
}

absl::StatusOr<ncclResult_t> NcclComm::State() {
  // Under the lock, so that no abort takes the communicator away meanwhile.
  absl::MutexLock lock(&mutex_);
  if (over_) return ErrorOf("aborted", ncclSuccess);
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = api_.ncclCommGetAsyncError(comm_, &state);
  return result == ncclSuccess ? state : result;
}

// ncclSuccess: NCCL has no part in it.
absl::Status NcclComm::ErrorOf(const char* what, ncclResult_t result) const {
  std::string text = absl::StrCat("NCCL of ", name(), ": ", what);
  if (result != ncclSuccess) {
    absl::StrAppend(&text, ": ", api_.ncclGetErrorString(result));
    const char* detail = api_.ncclGetLastError(nullptr);
    if (detail != nullptr && *detail != '\0') absl::StrAppend(&text, " (", detail, ")");
  }
  return WithFault(absl::UnavailableError(text), FaultOfResult(result));
}

}  // namespace motley::engine
