// What the fake NCCL knows: communicators, the calls that their members have come to, and who is stuck in one. Private to it.
//
// One mutex for the process; what blocks waits on one condition. Everything here is called with the mutex held.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "worker/engine/nccl/nccl_api.h"

namespace motley::engine {

enum class FakeKind { kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce, kSend, kReceive };

struct FakeCall {
  FakeKind kind;
  ncclComm_t comm;
  const void* from;
  void* to;
  size_t count;
  ncclDataType_t type;
  int root = -1;  // of hand-overs: the peer
};

using FakeCallPtr = std::shared_ptr<const FakeCall>;

// A collective, or a hand-over, that some members have come to.
struct FakeOperation {
  std::vector<FakeCallPtr> by_member;  // of a hand-over: sender, receiver
  int here = 0;
  bool done = false;
};
using FakeOperationPtr = std::shared_ptr<FakeOperation>;

// The members of one communicator.
struct FakeClique {
  int ranks = 0;
  std::string label;
  int most_ctas = 0;  // of its configuration
  std::vector<bool> joined;
  int here = 0;
  int finalized = 0;
  // Nothing is done any more: what a member has given may be gone.
  bool broken = false;
  ncclResult_t error = ncclSuccess;
  std::string failure;  // who called what
  std::deque<FakeOperationPtr> collectives;
  uint64_t first_collective = 0;                                           // the number of the first in the queue
  std::map<std::pair<int, int>, std::deque<FakeOperationPtr>> hand_overs;  // by sender and receiver: not yet met
};

struct ncclComm {
  std::shared_ptr<FakeClique> clique;
  int rank = 0;
  std::thread::id card;  // of the thread that made it: each rank is one
  uint64_t next_collective = 0;
  int polls_left = 0;
  int in_calls = 0;  // threads
  std::shared_ptr<bool> aborted = std::make_shared<bool>(false);
};

// Puts the call beside those of other members; the last to come moves the data. A call that differs breaks the clique.
FakeOperationPtr ComeTo(const FakeCallPtr& call);
// "broadcast of 5 float32 from 1"
std::string TextOf(const FakeCall& call);

}  // namespace motley::engine
