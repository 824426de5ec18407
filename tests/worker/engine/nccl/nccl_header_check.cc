// Our own declarations of NCCL against its header: compiled by tests/integration/check_header.sh, never linked.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "worker/engine/nccl/nccl_api.h"

namespace ours = motley::engine;

// ---- values ----

#define MOTLEY_SAME_VALUE(name) static_assert(static_cast<long>(ours::name) == static_cast<long>(::name), #name)
MOTLEY_SAME_VALUE(ncclSuccess);
MOTLEY_SAME_VALUE(ncclUnhandledCudaError);
MOTLEY_SAME_VALUE(ncclSystemError);
MOTLEY_SAME_VALUE(ncclInternalError);
MOTLEY_SAME_VALUE(ncclInvalidArgument);
MOTLEY_SAME_VALUE(ncclInvalidUsage);
MOTLEY_SAME_VALUE(ncclRemoteError);
MOTLEY_SAME_VALUE(ncclInProgress);
// 2.30 has ncclTimeout besides, of calls that we do not make: an error like any other.
static_assert(::ncclNumResults <= 9, "a result that we do not know");
MOTLEY_SAME_VALUE(ncclSum);
MOTLEY_SAME_VALUE(ncclUint8);
MOTLEY_SAME_VALUE(ncclFloat16);
MOTLEY_SAME_VALUE(ncclFloat32);
MOTLEY_SAME_VALUE(ncclFloat64);
MOTLEY_SAME_VALUE(ncclBfloat16);
static_assert(ours::kNcclUniqueIdBytes == NCCL_UNIQUE_ID_BYTES);
static_assert(ours::kNcclUndefined == NCCL_CONFIG_UNDEF_INT);

// ---- types ----

#define MOTLEY_SAME_LAYOUT(name) \
  static_assert(sizeof(ours::name) == sizeof(::name) && alignof(ours::name) == alignof(::name), #name)
MOTLEY_SAME_LAYOUT(ncclResult_t);
MOTLEY_SAME_LAYOUT(ncclRedOp_t);
MOTLEY_SAME_LAYOUT(ncclDataType_t);
MOTLEY_SAME_LAYOUT(ncclComm_t);
MOTLEY_SAME_LAYOUT(ncclUniqueId);
// A newer header may have further fields, behind ours. NCCL reads as many as the size says.
static_assert(sizeof(ours::ncclConfig_t) <= sizeof(::ncclConfig_t) && alignof(ours::ncclConfig_t) == alignof(::ncclConfig_t));
static_assert(NCCL_VERSION_CODE > 22809 || sizeof(ours::ncclConfig_t) == sizeof(::ncclConfig_t));
static_assert(offsetof(ours::ncclUniqueId, internal) == offsetof(::ncclUniqueId, internal));

#define MOTLEY_SAME_FIELD(name)                                                                         \
  static_assert(offsetof(ours::ncclConfig_t, name) == offsetof(::ncclConfig_t, name) &&                 \
                    std::is_same_v<decltype(ours::ncclConfig_t::name), decltype(::ncclConfig_t::name)>, \
                #name)
MOTLEY_SAME_FIELD(size);
MOTLEY_SAME_FIELD(magic);
MOTLEY_SAME_FIELD(version);
MOTLEY_SAME_FIELD(blocking);
MOTLEY_SAME_FIELD(cgaClusterSize);
MOTLEY_SAME_FIELD(minCTAs);
MOTLEY_SAME_FIELD(maxCTAs);
MOTLEY_SAME_FIELD(netName);
MOTLEY_SAME_FIELD(splitShare);
MOTLEY_SAME_FIELD(trafficClass);
MOTLEY_SAME_FIELD(commName);
MOTLEY_SAME_FIELD(collnetEnable);
MOTLEY_SAME_FIELD(CTAPolicy);
MOTLEY_SAME_FIELD(shrinkShare);
MOTLEY_SAME_FIELD(nvlsCTAs);
MOTLEY_SAME_FIELD(nChannelsPerNetPeer);
MOTLEY_SAME_FIELD(nvlinkCentricSched);

constexpr ::ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
constexpr ours::ncclConfig_t kOurs;
static_assert(kOurs.size == sizeof(kOurs) && kOurs.magic == kTheirs.magic && kOurs.version <= kTheirs.version);
static_assert(kOurs.blocking == kTheirs.blocking && kOurs.nvlinkCentricSched == kTheirs.nvlinkCentricSched);

// ---- functions ----

// Whether a parameter or result of ours stands for one of theirs.
template <typename Ours, typename Theirs>
constexpr bool kSame = std::is_same_v<Ours, Theirs>;
template <typename Ours, typename Theirs>
constexpr bool kSame<Ours*, Theirs*> = std::is_same_v<Ours, Theirs> || kSame<Ours, Theirs>;
template <>
constexpr bool kSame<void*, cudaStream_t> = true;
template <>
constexpr bool kSame<ours::ncclComm, ::ncclComm> = true;
template <>
constexpr bool kSame<ours::ncclUniqueId, ::ncclUniqueId> = true;
template <>
constexpr bool kSame<ours::ncclConfig_t, ::ncclConfig_t> = true;
template <>
constexpr bool kSame<ours::ncclResult_t, ::ncclResult_t> = true;
template <>
constexpr bool kSame<ours::ncclRedOp_t, ::ncclRedOp_t> = true;
template <>
constexpr bool kSame<ours::ncclDataType_t, ::ncclDataType_t> = true;

template <typename Ours, typename Theirs>
constexpr bool kSameFunction = false;
template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool kSameFunction<OurResult (*)(Ours...), TheirResult (*)(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
    return false;
  } else {
    return kSame<OurResult, TheirResult> && (kSame<Ours, Theirs> && ...);
  }
}();

#define MOTLEY_SAME_FUNCTION(name) static_assert(kSameFunction<decltype(ours::NcclApi::name), decltype(&::name)>, #name)
MOTLEY_SAME_FUNCTION(ncclGetVersion);
MOTLEY_SAME_FUNCTION(ncclGetUniqueId);
MOTLEY_SAME_FUNCTION(ncclCommInitRankConfig);
MOTLEY_SAME_FUNCTION(ncclCommFinalize);
MOTLEY_SAME_FUNCTION(ncclCommDestroy);
MOTLEY_SAME_FUNCTION(ncclCommAbort);
MOTLEY_SAME_FUNCTION(ncclCommGetAsyncError);
MOTLEY_SAME_FUNCTION(ncclGetErrorString);
MOTLEY_SAME_FUNCTION(ncclGetLastError);
MOTLEY_SAME_FUNCTION(ncclGroupStart);
MOTLEY_SAME_FUNCTION(ncclGroupEnd);
MOTLEY_SAME_FUNCTION(ncclBroadcast);
MOTLEY_SAME_FUNCTION(ncclReduce);
MOTLEY_SAME_FUNCTION(ncclAllGather);
MOTLEY_SAME_FUNCTION(ncclReduceScatter);
MOTLEY_SAME_FUNCTION(ncclAllReduce);
MOTLEY_SAME_FUNCTION(ncclSend);
MOTLEY_SAME_FUNCTION(ncclRecv);
// Whoever adds a function adds it here too; `await_enqueued` is not NCCL's.
static_assert(sizeof(ours::NcclApi) == 19 * sizeof(void*));
