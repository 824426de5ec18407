#include "planner/costs/nccl_buffers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "planner/costs/memory_model.h"

namespace motley::planner {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
// The driver gives memory that processes share in such blocks (CUDA_IPC_MIN).
constexpr int64_t kBlock = 2 * kMiB;
constexpr int64_t InBlocks(int64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

// Of a connection, one for each protocol.
constexpr int64_t kSteps = 8;
constexpr int64_t kSimple = 4 * kMiB;
constexpr int64_t kLl = 8 * 512 * kSteps * 16;      // lines a thread, threads, steps, bytes
constexpr int64_t kLl128 = 120 * 640 * kSteps * 8;  // elements a thread, threads, steps, bytes
constexpr int64_t kHeads = 4 * kKiB;                // ncclSendMem, ncclRecvMem

// Past the host's memory the receiver has the buffers and the sender its heads; where A100s read each other's the sum is the
// same.
constexpr int64_t kPeerSend = InBlocks(kHeads), kPeerReceive = InBlocks(kHeads + kSimple + kLl + kLl128);
// Over a network whose card reads the GPU's memory; LL stays with the host. Without (sockets) all of it does.
constexpr int64_t kNetConnection = InBlocks(kSimple + kLl128);

// Over NVLink as many as a card may give (nccl_mesh.cc). Over PCIe and a network NCCL finds one or two rings and doubles them.
constexpr int64_t kNvlinkChannels = 32, kNvlinkPairChannels = 8, kOtherChannels = 4;
constexpr int64_t kPoolSteps = 16;  // NCCL_SHARED_STEPS
constexpr int64_t kNvlinkChunk = 512 * kKiB, kOtherChunk = 128 * kKiB;

constexpr int64_t kMulticastChannels = 16, kMulticastStep = 128 * kKiB;
constexpr int64_t kArrays = kBlock;  // what small there is: channels, peers, their ranks
// All are loaded with the first communicator. In the wheels of 2.30.7 they are 95 MiB (sm_80) to 203 MiB (sm_90) of files, of
// which code is a part: an order of magnitude.
constexpr int64_t kKernels = 128 * kMiB;

int64_t ChannelsOf(const NcclSite& site, bool pair) {
  if (site.path != NcclPath::kNvlink) return kOtherChannels;
  return pair ? kNvlinkPairChannels : kNvlinkChannels;
}

// A pool of each communicator, also where nothing goes over a network.
int64_t PoolBytes(const NcclSite& site, int64_t channels) {
  const int64_t chunk = site.path == NcclPath::kNvlink ? kNvlinkChunk : kOtherChunk;
  return kPoolSteps * chunk * channels;
}

// Ring and tree of a node go along one line: to and from both neighbours.
int64_t InsideBytes(const NcclSite& site, int64_t members, int64_t channels) {
  if (members < 2 || site.path == NcclPath::kHost) return 0;
  const int64_t neighbours = std::min<int64_t>(members - 1, 2);
  const int64_t multicast =
      site.path == NcclPath::kNvlink && members > 2 ? kMulticastChannels * 2 * kSteps * kMulticastStep * members : 0;
  return channels * neighbours * (kPeerSend + kPeerReceive) + multicast;
}

// The ring's neighbour, a tree's parent and two children, and PAT's peers, which are 1, 2, 4, ... away; each to and from. Beside
// them a second pool, of what comes in.
int64_t AcrossBytes(int64_t nodes) {
  if (nodes < 2) return 0;
  const int64_t distances = std::bit_width(static_cast<uint64_t>(nodes - 1));
  const int64_t peers = std::min(nodes - 1, 4 + distances);
  return kOtherChannels * (peers * 2 * kNetConnection + kPoolSteps * kOtherChunk);
}

}  // namespace

NcclSite SiteOf(const Cluster& cluster, int kind) {
  NcclSite site{cluster.kinds[kind].nccl, 0, 0};
  for (const ClusterNode& node : cluster.nodes) {
    const int64_t cards = std::count_if(node.devices.begin(), node.devices.end(),
                                        [&](int d) { return cluster.kinds[cluster.devices[d].kind].nccl != NcclPath::kNone; });
    site.local_cards = std::max(site.local_cards, cards);
    if (cards > 0) ++site.nodes;
  }
  return site;
}

int64_t NcclGroupBytes(const NcclSite& site, int64_t members) {
  if (site.path == NcclPath::kNone || members < 2) return 0;
  const int64_t channels = ChannelsOf(site, /*pair=*/false);
  const int64_t inside = InsideBytes(site, std::min(members, site.local_cards), channels);
  const int64_t across = AcrossBytes(std::min(members, site.nodes));
  const bool fits_a_node = members <= site.local_cards;
  return kArrays + PoolBytes(site, channels) + (fits_a_node ? std::max(inside, across) : inside + across);
}

int64_t NcclPairBytes(const NcclSite& site, bool receives) {
  if (site.path == NcclPath::kNone) return 0;
  const int64_t channels = ChannelsOf(site, /*pair=*/true);
  int64_t inside = InsideBytes(site, std::min<int64_t>(2, site.local_cards), channels);
  // Hand-overs have connections of their own.
  if (inside > 0) inside += channels * (receives ? kPeerReceive : kPeerSend);
  return kArrays + PoolBytes(site, channels) + std::max(inside, AcrossBytes(std::min<int64_t>(2, site.nodes)));
}

int64_t NcclBytes(const NcclSite& site, const RankDuty& duty, bool tied_embeddings) {
  if (site.path == NcclPath::kNone) return 0;
  int64_t bytes = NcclGroupBytes(site, duty.group_size);
  if (duty.tp_share < 1) bytes += NcclGroupBytes(site, std::max<int64_t>(2, std::llround(1 / duty.tp_share)));
  // Of replicas that keep whole states nobody says how many there are; beyond three it is nearly the same.
  if (duty.sums_across) bytes += NcclGroupBytes(site, std::max<int64_t>(3, std::llround(1 / duty.replica_share)));
  if (duty.num_stages > 1) {
    if (tied_embeddings && duty.embedding != duty.head) bytes += NcclGroupBytes(site, 2);
    // Ministages go round: the last stage hands over to the first.
    const bool round = duty.ministages > 1 && duty.num_stages > 2;
    const int64_t neighbours = round ? 2 : std::max<int64_t>(1, (duty.embedding ? 0 : 1) + (duty.head ? 0 : 1));
    bytes += neighbours * (NcclPairBytes(site, false) + NcclPairBytes(site, true));
  }
  return bytes > 0 ? bytes + kKernels : 0;
}

}  // namespace motley::planner
