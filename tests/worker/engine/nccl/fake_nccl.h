// NCCL over host memory, for ranks that are threads of one process: a shared library with NCCL's names, opened the way the real
// one is. Real data moves. docs/inside/nccl.md
//
// Calls between ncclGroupStart and ncclGroupEnd are collected and enqueued at the end, together; others by themselves. No call
// waits for other members. fakeNcclAwaitEnqueued does, whose thread stands for the stream: until the other members have come to
// theirs; an abort of the communicator or a failure ends it. Members of one communicator that make different calls (another one,
// another count, type or root) all fail with ncclInvalidUsage, and ncclGetLastError says who called what. So does a thread that
// enqueues on a card while another one does: each thread that makes communicators has a card.
//
// Its functions beyond NCCL's steer it. All are thread-safe; one state for the process.
#pragma once

#include <cstdint>

#include "worker/engine/nccl/nccl_api.h"

extern "C" {

struct FakeNcclBehaviour {
  int version = 22809;
  // So many polls of ncclCommGetAsyncError answer ncclInProgress: after all members have made a communicator, after each group of
  // calls, and after ncclCommFinalize.
  int in_progress_polls = 0;
  // Each group of calls begins up to so late, by lot.
  int latest_us = 0;
  uint32_t seed = 0;
  // Communicators are not made: ncclCommGetAsyncError answers this, and ncclGetLastError has these words.
  int making_fails = 0;
  const char* words = "";
};
void fakeNcclBehave(const FakeNcclBehaviour* behaviour);

// The communicator whose configuration has this name fails: as if the network had broken, its members see `result` in
// ncclCommGetAsyncError. Calls under way stay blocked, as kernels do.
void fakeNcclFail(const char* label, int result);
// Member `rank` of the communicator with this name dies in its next group of calls: others wait for it for ever, and its own
// thread comes back with ncclSystemError.
void fakeNcclDieInNextCall(const char* label, int rank);
// How many communicators of all ranks were made and neither destroyed nor aborted.
int fakeNcclLiveComms();
// How much of a card the communicator with this name was allowed to take (maxCTAs); kNcclUndefined: as much as it likes.
int fakeNcclMostCtas(const char* label);
// How many calls (broadcasts, sends, ...) have run since the last reset, of all ranks.
int64_t fakeNcclCalls();
// Blocks until what this thread has enqueued last is done.
motley::engine::ncclResult_t fakeNcclAwaitEnqueued();
// As after loading.
void fakeNcclReset();

}  // extern "C"
