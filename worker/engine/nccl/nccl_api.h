// What Motley uses of NCCL, declared here: neither nccl.h nor CUDA is needed to compile, and the library is opened at run time
// (nccl_library.h). Names and values are nccl.h's of 2.28; a test compares every one of them with it, and with the header of the
// NCCL that `setup --gpu` brings. A cudaStream_t is a void*.
//
// Fields of the configuration were only ever added at the end, and its size says how many there are. An older NCCL reads as many
// as it knows, a newer one (2.30 has four more) takes its own values for the rest.
#pragma once

#include <climits>
#include <cstddef>

namespace motley::engine {

struct ncclComm;
using ncclComm_t = ncclComm*;

inline constexpr int kNcclUniqueIdBytes = 128;
struct ncclUniqueId {
  char internal[kNcclUniqueIdBytes];
};

enum ncclResult_t : unsigned {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

enum ncclRedOp_t : unsigned { ncclSum = 0 };

enum ncclDataType_t : unsigned {
  ncclUint8 = 1,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};

inline constexpr int kNcclUndefined = INT_MIN;

struct ncclConfig_t {
  size_t size = sizeof(ncclConfig_t);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 22809;  // of the declaration, not of the library
  int blocking = kNcclUndefined;
  int cgaClusterSize = kNcclUndefined;
  int minCTAs = kNcclUndefined;
  int maxCTAs = kNcclUndefined;
  const char* netName = nullptr;
  int splitShare = kNcclUndefined;
  int trafficClass = kNcclUndefined;
  const char* commName = nullptr;
  int collnetEnable = kNcclUndefined;
  int CTAPolicy = kNcclUndefined;
  int shrinkShare = kNcclUndefined;
  int nvlsCTAs = kNcclUndefined;
  int nChannelsPerNetPeer = kNcclUndefined;
  int nvlinkCentricSched = kNcclUndefined;
};

// NCCL's functions, each under its own name.
struct NcclApi {
  ncclResult_t (*ncclGetVersion)(int* version) = nullptr;
  ncclResult_t (*ncclGetUniqueId)(ncclUniqueId* id) = nullptr;
  ncclResult_t (*ncclCommInitRankConfig)(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) = nullptr;
  ncclResult_t (*ncclCommFinalize)(ncclComm_t comm) = nullptr;
  ncclResult_t (*ncclCommDestroy)(ncclComm_t comm) = nullptr;
  ncclResult_t (*ncclCommAbort)(ncclComm_t comm) = nullptr;
  ncclResult_t (*ncclCommGetAsyncError)(ncclComm_t comm, ncclResult_t* error) = nullptr;
  const char* (*ncclGetErrorString)(ncclResult_t result) = nullptr;
  const char* (*ncclGetLastError)(ncclComm_t comm) = nullptr;
  ncclResult_t (*ncclGroupStart)() = nullptr;
  ncclResult_t (*ncclGroupEnd)() = nullptr;
  ncclResult_t (*ncclBroadcast)(const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                void* stream) = nullptr;
  ncclResult_t (*ncclReduce)(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                             ncclComm_t comm, void* stream) = nullptr;
  ncclResult_t (*ncclAllGather)(const void* from, void* to, size_t each, ncclDataType_t type, ncclComm_t comm,
                                void* stream) = nullptr;
  ncclResult_t (*ncclReduceScatter)(const void* from, void* to, size_t each, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                    void* stream) = nullptr;
  ncclResult_t (*ncclAllReduce)(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                void* stream) = nullptr;
  ncclResult_t (*ncclSend)(const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                           void* stream) = nullptr;
  ncclResult_t (*ncclRecv)(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, void* stream) = nullptr;

  // Not NCCL's. For tests, where the calling thread stands for the stream: blocks until what it has enqueued is done. Null:
  // nobody waits.
  ncclResult_t (*await_enqueued)() = nullptr;
};

}  // namespace motley::engine
