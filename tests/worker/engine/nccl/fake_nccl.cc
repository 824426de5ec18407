#include "tests/worker/engine/nccl/fake_nccl.h"

#include <ifaddrs.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/worker/engine/nccl/fake_cliques.h"

namespace motley::engine {
namespace {

// Who is putting calls on a card's streams.
struct Enqueuing {
  std::thread::id thread;
  std::set<ncclComm_t> comms;  // of which not all calls are there yet
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  FakeNcclBehaviour behaviour;
  std::mt19937 random;
  std::map<std::string, std::shared_ptr<FakeClique>> cliques;  // by id, while one of their members lives
  std::set<ncclComm_t> comms;
  std::set<std::pair<std::string, int>> dying;     // label and rank
  std::map<std::thread::id, Enqueuing> enqueuing;  // by card
  int64_t ids = 0, calls = 0;
};
State state;

thread_local int group_depth = 0;
thread_local std::vector<FakeCall> group;
// What the thread has enqueued last and not awaited.
struct Enqueued {
  FakeOperationPtr operation;
  std::shared_ptr<FakeClique> clique;
  std::shared_ptr<bool> aborted;
};
thread_local std::vector<Enqueued> enqueued;
thread_local std::string last_error;

using Lock = std::unique_lock<std::mutex>;

ncclResult_t Refuse(ncclResult_t result, const std::string& why) {
  last_error = why;
  return result;
}

// NCCL: "it is not safe to issue operations in parallel to independent communicators located on the same device".
bool Enter(ncclComm_t comm) {
  Enqueuing& on_card = state.enqueuing[comm->card];
  if (!on_card.comms.empty() && on_card.thread != std::this_thread::get_id()) return false;
  on_card.thread = std::this_thread::get_id();
  on_card.comms.insert(comm);
  return true;
}
void Leave(ncclComm_t comm) { state.enqueuing[comm->card].comms.erase(comm); }

void Forget(ncclComm_t comm) {
  Leave(comm);
  state.comms.erase(comm);
  std::erase_if(state.cliques, [](const auto& entry) {
    return std::none_of(state.comms.begin(), state.comms.end(), [&](ncclComm_t one) { return one->clique == entry.second; });
  });
  delete comm;
}

// What forbids these calls; empty: nothing. One whose time has come dies.
std::string WhyNot(const std::vector<FakeCall>& calls) {
  for (const FakeCall& call : calls) {
    if (!state.comms.contains(call.comm)) return TextOf(call) + " on a communicator that is gone";
    FakeClique& clique = *call.comm->clique;
    if (clique.here < clique.ranks) return TextOf(call) + " on a communicator that is not made yet";
    if (call.comm->polls_left > 0) return TextOf(call) + " while the one before is in progress";
    const bool has_root =
        call.kind != FakeKind::kAllGather && call.kind != FakeKind::kReduceScatter && call.kind != FakeKind::kAllReduce;
    if (has_root && (call.root < 0 || call.root >= clique.ranks)) return TextOf(call) + ": there is no such rank";
  }
  return "";
}

bool Dies(const std::vector<FakeCall>& calls) {
  for (const FakeCall& call : calls) {
    if (state.dying.erase({call.comm->clique->label, call.comm->rank}) == 0) continue;
    call.comm->clique->broken = true;
    return true;
  }
  return false;
}

void StartLate(Lock& lock) {
  if (state.behaviour.latest_us <= 0) return;
  const int late_us = static_cast<int>(state.random() % static_cast<unsigned>(state.behaviour.latest_us));
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(late_us));
  lock.lock();
}

// Of a real one there is no end.
constexpr std::chrono::seconds kLongestEnd(20);

ncclResult_t Refused(const std::set<ncclComm_t>& comms, ncclResult_t result, const std::string& why) {
  for (const ncclComm_t comm : comms) {
    if (state.comms.contains(comm)) Leave(comm);
  }
  return Refuse(result, why);
}

// Puts them where other members find them.
ncclResult_t RunGroup(std::vector<FakeCall> calls) {
  if (calls.empty()) return ncclSuccess;
  Lock lock(state.mutex);
  std::set<ncclComm_t> comms;
  for (const FakeCall& call : calls) comms.insert(call.comm);
  if (const std::string why = WhyNot(calls); !why.empty()) return Refused(comms, ncclInvalidUsage, why);
  if (Dies(calls)) return Refused(comms, ncclSystemError, "this rank died");
  for (const ncclComm_t comm : comms) ++comm->in_calls;
  StartLate(lock);
  enqueued.clear();
  for (FakeCall& call : calls) {
    const FakeOperationPtr operation = ComeTo(std::make_shared<const FakeCall>(call));
    enqueued.push_back({operation, call.comm->clique, call.comm->aborted});
  }
  state.calls += static_cast<int64_t>(calls.size());
  const int polls = state.behaviour.in_progress_polls;
  for (const ncclComm_t comm : comms) {
    --comm->in_calls;
    comm->polls_left = polls;
    if (polls == 0) Leave(comm);
  }
  state.changed.notify_all();
  return polls > 0 ? ncclInProgress : ncclSuccess;
}

ncclResult_t Take(const FakeCall& call) {
  {
    Lock lock(state.mutex);
    if (state.comms.contains(call.comm) && !Enter(call.comm)) {
      return Refuse(ncclInvalidUsage, TextOf(call) + " while another thread enqueues on the card");
    }
  }
  group.push_back(call);
  return group_depth > 0 ? ncclSuccess : RunGroup(std::exchange(group, {}));
}

}  // namespace

extern "C" {

void fakeNcclBehave(const FakeNcclBehaviour* behaviour) {
  Lock lock(state.mutex);
  state.behaviour = *behaviour;
  state.random.seed(behaviour->seed);
}

void fakeNcclFail(const char* label, int result) {
  Lock lock(state.mutex);
  for (auto& [id, clique] : state.cliques) {
    if (clique->label != label) continue;
    clique->broken = true;
    clique->error = static_cast<ncclResult_t>(result);
  }
  state.changed.notify_all();
}

void fakeNcclDieInNextCall(const char* label, int rank) {
  Lock lock(state.mutex);
  state.dying.insert({label, rank});
}

int fakeNcclLiveComms() {
  Lock lock(state.mutex);
  return static_cast<int>(state.comms.size());
}

int fakeNcclMostCtas(const char* label) {
  Lock lock(state.mutex);
  for (const ncclComm_t comm : state.comms) {
    if (comm->clique->label == label) return comm->clique->most_ctas;
  }
  return 0;
}

int64_t fakeNcclCalls() {
  Lock lock(state.mutex);
  return state.calls;
}

ncclResult_t fakeNcclAwaitEnqueued() {
  Lock lock(state.mutex);
  ncclResult_t result = ncclSuccess;
  state.changed.wait(lock, [&] {
    for (const Enqueued& one : enqueued) {
      if (one.operation->done) continue;
      if (*one.aborted) {
        result = Refuse(ncclInternalError, "aborted");
        return true;
      }
      // Somebody calls it wrong. A network that breaks leaves kernels as they are.
      if (one.clique->broken && !one.clique->failure.empty()) {
        result = Refuse(one.clique->error, one.clique->failure);
        return true;
      }
      return false;
    }
    return true;
  });
  // Nobody reads what a call points to once it is over.
  for (const Enqueued& one : enqueued) one.clique->broken |= result != ncclSuccess;
  enqueued.clear();
  state.changed.notify_all();
  return result;
}

void fakeNcclReset() {
  Lock lock(state.mutex);
  state.behaviour = {};
  state.random.seed(0);
  state.dying.clear();
  state.calls = 0;
}

ncclResult_t ncclGetVersion(int* version) {
  Lock lock(state.mutex);
  *version = state.behaviour.version;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  Lock lock(state.mutex);
  *id = {};
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return ncclSystemError;
  freeifaddrs(interfaces);
  const std::string text = "fake " + std::to_string(++state.ids);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  Lock lock(state.mutex);
  if (config == nullptr || config->magic != ncclConfig_t().magic || config->size != sizeof(ncclConfig_t) ||
      config->blocking != 0) {
    return Refuse(ncclInvalidArgument, "the configuration is none, or asks for blocking calls");
  }
  std::shared_ptr<FakeClique>& clique = state.cliques[std::string(id.internal, sizeof(id.internal))];
  if (clique == nullptr) {
    clique = std::make_shared<FakeClique>();
    clique->ranks = ranks;
    clique->joined.resize(ranks);
    clique->most_ctas = config->maxCTAs;
    if (config->commName != nullptr) clique->label = config->commName;
  }
  if (clique->most_ctas != config->maxCTAs) {
    return Refuse(ncclInvalidArgument, "its members are to take unlike parts of their cards");
  }
  if (clique->ranks != ranks || rank < 0 || rank >= ranks || clique->joined[rank]) {
    return Refuse(ncclInvalidArgument,
                  "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " is none or is there twice");
  }
  clique->joined[rank] = true;
  ++clique->here;
  *comm = new ncclComm{
      .clique = clique, .rank = rank, .card = std::this_thread::get_id(), .polls_left = state.behaviour.in_progress_polls};
  state.comms.insert(*comm);
  if (state.behaviour.making_fails != 0) {
    clique->broken = true;
    clique->error = static_cast<ncclResult_t>(state.behaviour.making_fails);
    clique->failure = state.behaviour.words;
  }
  state.changed.notify_all();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  Lock lock(state.mutex);
  if (!state.comms.contains(comm)) return Refuse(ncclInvalidArgument, "a communicator that is gone");
  const FakeClique& clique = *comm->clique;
  *error = clique.error;
  if (clique.error != ncclSuccess) {
    Leave(comm);
    return Refuse(ncclSuccess, clique.failure);
  }
  if (clique.here < clique.ranks) {
    *error = ncclInProgress;
  } else if (comm->polls_left > 0) {
    --comm->polls_left;
    *error = ncclInProgress;
  } else if (comm->in_calls == 0) {
    Leave(comm);
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Lock lock(state.mutex);
  if (comm->in_calls > 0) return Refuse(ncclInvalidUsage, "finalized during a call");
  comm->polls_left = state.behaviour.in_progress_polls;
  ++comm->clique->finalized;
  state.changed.notify_all();
  return ncclInProgress;
}

// As on one node: it waits for the other members' connections to close.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock(state.mutex);
  const FakeClique& clique = *comm->clique;
  const bool ended = state.changed.wait_for(lock, kLongestEnd, [&] { return clique.broken || clique.finalized >= clique.ranks; });
  if (!ended) Refuse(ncclInternalError, "given back before the other members were finalized");
  Forget(comm);
  if (!ended) return ncclInternalError;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock(state.mutex);
  *comm->aborted = true;
  comm->clique->broken = true;
  state.changed.notify_all();
  state.changed.wait(lock, [&] { return comm->in_calls == 0; });
  Forget(comm);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return Refuse(ncclInvalidUsage, "the end of a group without its start");
  return --group_depth > 0 ? ncclSuccess : RunGroup(std::exchange(group, {}));
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm, void*) {
  return Take({FakeKind::kBroadcast, comm, from, to, count, type, root});
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t, int root, ncclComm_t comm,
                        void*) {
  return Take({FakeKind::kReduce, comm, from, to, count, type, root});
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t each, ncclDataType_t type, ncclComm_t comm, void*) {
  return Take({FakeKind::kAllGather, comm, from, to, each, type});
}

ncclResult_t ncclReduceScatter(const void* from, void* to, size_t each, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                               void*) {
  return Take({FakeKind::kReduceScatter, comm, from, to, each, type});
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t, ncclComm_t comm, void*) {
  return Take({FakeKind::kAllReduce, comm, from, to, count, type});
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, void*) {
  return Take({FakeKind::kSend, comm, from, nullptr, count, type, peer});
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, void*) {
  return Take({FakeKind::kReceive, comm, nullptr, to, count, type, peer});
}

}  // extern "C"

}  // namespace motley::engine
