// What NCCL takes of a card for its communicators, beside PyTorch's allocator, where all connections are made with the
// communicator (NCCL_RUNTIME_CONNECT=0, worker/engine/nccl). An upper bound where NCCL decides by the machine. Pure.
// docs/inside/nccl.md, "Memory". Which communicators a program needs: planner/lowering/program_communicators.
//
// Source: NCCL 2.30. Buffers of a connection: src/init.cc (computeBuffSizes), src/transport/p2p.cc (p2pSendSetup, p2pRecvSetup),
// src/transport/net.cc (sendProxyConnect, recvProxyConnect). What is connected: src/init.cc (initTransportsRank). Pools of
// hand-overs: src/transport/net.cc (sharedNetBuffersInit). Multicast: src/transport/nvls.cc (ncclNvlsBufferSetup).
#pragma once

#include <cstdint>

#include "planner/cluster/cluster.h"

namespace motley::planner {

struct RankDuty;

// The members of one communicator, as one of them finds them.
struct NcclSpread {
  NcclPath path = NcclPath::kHost;  // to those of its node, at best
  int64_t local = 1;                // members in its node, itself among them
  int64_t nodes = 1;                // with members
};
// Of the communicator of a group. 0: there is no other member.
int64_t NcclGroupBytes(const NcclSpread& spread);
// One direction of a hand-over; the one that receives has the buffers.
int64_t NcclPairBytes(const NcclSpread& spread, bool receives);

// NCCL's kernels, once for a rank that has a communicator: all are loaded with the first. In the wheels of 2.30.7 they are 95 MiB
// (sm_80) to 203 MiB (sm_90) of files, of which code is a part: an order of magnitude.
inline constexpr int64_t kNcclKernelBytes = int64_t{128} << 20;

// ---- for searches, which have no programs and do not say where a rank's peers are: the most that it may be ----

// Of a kind of card: what its ranks may find around them.
struct NcclSite {
  NcclPath path = NcclPath::kNone;  // to cards of its node
  int64_t local_cards = 1;          // that use NCCL, in the node that has most
  int64_t nodes = 1;                // with such cards
};
NcclSite SiteOf(const Cluster& cluster, int kind);

// A group's members are in as few nodes as can be; what fits a node may still be spread.
int64_t NcclGroupBytes(const NcclSite& site, int64_t members);
int64_t NcclPairBytes(const NcclSite& site, bool receives);

// Of all communicators that such a rank is in: groups for its stage's state, for a tensor-parallel unit, for its replicas and for
// a tied embedding, and a pair for each direction with one rank of each neighbouring stage.
int64_t NcclBytes(const NcclSite& site, const RankDuty& duty, bool tied_embeddings);

}  // namespace motley::planner
