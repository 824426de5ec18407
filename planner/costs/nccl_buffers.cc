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

int64_t ChannelsOf(const NcclSpread& spread, bool pair) {
  if (spread.path != NcclPath::kNvlink || spread.local < 2) return kOtherChannels;
  return pair ? kNvlinkPairChannels : kNvlinkChannels;
}

// A pool of each communicator, also where nothing goes over a network.
int64_t PoolBytes(const NcclSpread& spread, int64_t channels) {
  const bool large = spread.path == NcclPath::kNvlink && spread.nodes == 1;
  return kPoolSteps * (large ? kNvlinkChunk : kOtherChunk) * channels;
}

// Ring and tree of a node go along one line: to and from both neighbours.
int64_t InsideBytes(const NcclSpread& spread, int64_t channels) {
  if (spread.local < 2 || spread.path == NcclPath::kHost) return 0;
  const int64_t neighbours = std::min<int64_t>(spread.local - 1, 2);
  const bool multicasts = spread.path == NcclPath::kNvlink && spread.local > 2;
  const int64_t multicast = multicasts ? kMulticastChannels * 2 * kSteps * kMulticastStep * spread.local : 0;
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

bool IsAlone(const NcclSpread& spread) { return spread.local < 2 && spread.nodes < 2; }

}  // namespace

int64_t NcclGroupBytes(const NcclSpread& spread) {
  if (IsAlone(spread)) return 0;
  const int64_t channels = ChannelsOf(spread, /*pair=*/false);
  return kArrays + PoolBytes(spread, channels) + InsideBytes(spread, channels) + AcrossBytes(spread.nodes);
}

int64_t NcclPairBytes(const NcclSpread& spread, bool receives) {
  if (IsAlone(spread)) return 0;
  const int64_t channels = ChannelsOf(spread, /*pair=*/true);
  int64_t inside = InsideBytes(spread, channels);
  // Hand-overs have connections of their own.
  if (inside > 0) inside += channels * (receives ? kPeerReceive : kPeerSend);
  return kArrays + PoolBytes(spread, channels) + inside + AcrossBytes(spread.nodes);
}

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
  const int64_t nodes = std::min(members, site.nodes);
  if (members > site.local_cards) return NcclGroupBytes(NcclSpread{site.path, site.local_cards, nodes});
  return std::max(NcclGroupBytes(NcclSpread{site.path, members, 1}), NcclGroupBytes(NcclSpread{NcclPath::kHost, 1, nodes}));
}

int64_t NcclPairBytes(const NcclSite& site, bool receives) {
  if (site.path == NcclPath::kNone) return 0;
  const NcclSpread inside{site.path, std::min<int64_t>(2, site.local_cards), 1};
  const NcclSpread across{NcclPath::kHost, 1, std::min<int64_t>(2, site.nodes)};
  return std::max(NcclPairBytes(inside, receives), NcclPairBytes(across, receives));
}

int64_t NcclBytes(const NcclSite& site, const RankDuty& duty, bool tied_embeddings) {
  if (site.path == NcclPath::kNone) return 0;
  int64_t bytes = NcclGroupBytes(site, duty.group_size);
  if (duty.tp_share < 1) bytes += NcclGroupBytes(site, std::max<int64_t>(2, std::llround(1 / duty.tp_share)));
  // Of replicas that keep whole states nobody says how many there are; beyond three it is nearly the same.
  if (duty.sums_across) bytes += NcclGroupBytes(site, std::max<int64_t>(3, std::llround(1 / duty.replica_share)));
  if (duty.num_stages > 1) {
    if (tied_embeddings && duty.embedding != duty.head) bytes += NcclGroupBytes(site, 2 * duty.group_size);
    // Ministages go round: the last stage hands over to the first.
    const bool round = duty.ministages > 1 && duty.num_stages > 2;
    const int64_t neighbours = round ? 2 : std::max<int64_t>(1, (duty.embedding ? 0 : 1) + (duty.head ? 0 : 1));
    bytes += neighbours * (NcclPairBytes(site, false) + NcclPairBytes(site, true));
  }
  return bytes > 0 ? bytes + kNcclKernelBytes : 0;
}

}  // namespace motley::planner
