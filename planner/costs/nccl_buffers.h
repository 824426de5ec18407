// What NCCL takes of a card for its communicators, beside PyTorch's allocator, where all connections are made with the
// communicator (NCCL_RUNTIME_CONNECT=0, worker/engine/nccl). An upper bound where NCCL decides by the machine. Pure.
// docs/nccl.md, "Memory".
//
// Source: NCCL 2.30. Buffers of a connection: src/init.cc (computeBuffSizes), src/transport/p2p.cc (p2pSendSetup, p2pRecvSetup),
// src/transport/net.cc (sendProxyConnect, recvProxyConnect). What is connected: src/init.cc (initTransportsRank). Pools of
// hand-overs: src/transport/net.cc (sharedNetBuffersInit). Multicast: src/transport/nvls.cc (ncclNvlsBufferSetup).
#pragma once

#include <cstdint>

#include "planner/cluster/cluster.h"

namespace motley::planner {

struct RankDuty;

// Of a kind of card: what its ranks may find around them.
struct NcclSite {
  NcclPath path = NcclPath::kNone;  // to cards of its node
  int64_t local_cards = 1;          // that use NCCL, in the node that has most
  int64_t nodes = 1;                // with such cards
};
NcclSite SiteOf(const Cluster& cluster, int kind);

// Of each communicator. A group's members are in as few nodes as can be.
int64_t NcclGroupBytes(const NcclSite& site, int64_t members);
// One direction of a hand-over; the one that receives has the buffers.
int64_t NcclPairBytes(const NcclSite& site, bool receives);

// Of all communicators that such a rank is in, and once NCCL's kernels: groups for its stage's state, for a tensor-parallel unit,
// for its replicas and for a tied embedding, and a pair for each direction with one rank of each neighbouring stage.
int64_t NcclBytes(const NcclSite& site, const RankDuty& duty, bool tied_embeddings);

}  // namespace motley::planner
