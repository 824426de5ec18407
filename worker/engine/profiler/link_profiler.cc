#include "worker/engine/profiler/link_profiler.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"

namespace motley::engine {
namespace {

// 8 nodes of several devices: each pair measured alone takes some 0.1 s.
constexpr size_t kMostPairsAlone = 36;

constexpr int64_t kSmallBytes = 256, kFirstBytes = 4 << 10, kMostBytes = 32 << 20;
constexpr int kSmallRepetitions = 3;
// Bytes grow until carrying them takes half of this, beyond what the small ones take: then neither the clock nor the latency
// matters. A size that would take all of it comes next.
constexpr double kCarrySeconds = 0.02;
// Small transfers are not repeated beyond this. Only far links get here.
constexpr double kSmallSeconds = 0.05;
// Of one direction; bytes do not grow beyond this.
constexpr double kMostSeconds = 1;

std::vector<std::vector<int>> RanksByNode(const std::vector<DeviceId>& devices) {
  std::map<NodeName, size_t> index;
  std::vector<std::vector<int>> nodes;
  for (size_t r = 0; r < devices.size(); ++r) {
    const auto [at, added] = index.emplace(NodeOf(devices[r]), nodes.size());
    if (added) nodes.emplace_back();
    nodes[at->second].push_back(static_cast<int>(r));
  }
  return nodes;
}

// Every two of `nodes` meet once; in each round a node meets one other at most (the circle method: one stays, the others go
// round).
std::vector<std::vector<std::pair<int, int>>> Rounds(int nodes) {
  std::vector<std::vector<std::pair<int, int>>> rounds;
  const int places = nodes + nodes % 2, turning = places - 1;  // of an odd number one rests
  for (int round = 0; nodes > 1 && round < turning; ++round) {
    std::vector<std::pair<int, int>>& pairs = rounds.emplace_back();
    for (int i = 0; i < places / 2; ++i) {
      const int a = i == 0 ? 0 : 1 + (i - 1 + round) % turning, b = 1 + (places - 2 - i + round) % turning;
      if (std::max(a, b) < nodes) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return rounds;
}

// The sender leads: before each transfer it says how many bytes come, 0 = no more. That word also gives both ends one start.
class HandOverTimer {
 public:
  explicit HandOverTimer(Communicator& communicator) : communicator_(communicator), data_(kMostBytes) {}

  absl::StatusOr<MeasuredLink> Lead(int to) {
    const int64_t begin_ns = MonotonicNs();
    const auto elapsed = [begin_ns] { return (MonotonicNs() - begin_ns) * 1e-9; };
    MOTLEY_ASSIGN_OR_RETURN(double small, Transfer(to, kSmallBytes));
    for (int i = 1; i < kSmallRepetitions && elapsed() < kSmallSeconds; ++i) {
      MOTLEY_ASSIGN_OR_RETURN(const double again, Transfer(to, kSmallBytes));
      small = std::min(small, again);
    }
    int64_t bytes = kFirstBytes;
    MOTLEY_ASSIGN_OR_RETURN(double large, Transfer(to, bytes));
    while (large - small < kCarrySeconds / 2 && bytes < kMostBytes && elapsed() < kMostSeconds) {
      const double factor = std::clamp(kCarrySeconds / std::max(large - small, 1e-6), 2.0, 16.0);
      bytes = std::min(kMostBytes, static_cast<int64_t>(static_cast<double>(bytes) * factor));
      MOTLEY_ASSIGN_OR_RETURN(large, Transfer(to, bytes));
    }
    MOTLEY_ASSIGN_OR_RETURN(const double again, Transfer(to, bytes));
    MOTLEY_RETURN_IF_ERROR(Send(to, Now(), &kNoMore, sizeof(kNoMore)));
    return LinkOf(to, small, bytes, std::min(large, again));
  }

  absl::Status Follow(int from) {
    for (;;) {
      int64_t bytes = 0;
      MOTLEY_RETURN_IF_ERROR(Receive(from, Now(), &bytes, sizeof(bytes)));
      if (bytes == kNoMore) return absl::OkStatus();
      if (bytes < 0 || bytes > kMostBytes) return absl::InternalError(absl::StrCat("a link is measured with ", bytes, " bytes"));
      MOTLEY_RETURN_IF_ERROR(Receive(from, communicator_.receive_pacer().end(), data_.data(), bytes));
    }
  }

 private:
  static constexpr int64_t kNoMore = 0;

  static absl::Duration Now() { return absl::Nanoseconds(MonotonicNs()); }

  absl::Status Send(int to, absl::Duration ready, const void* data, int64_t bytes) {
    communicator_.send_pacer().Begin(ready);
    MOTLEY_RETURN_IF_ERROR(communicator_.Send(to, data, bytes));
    communicator_.send_pacer().End(std::nullopt);
    return absl::OkStatus();
  }

  absl::Status Receive(int from, absl::Duration ready, void* data, int64_t bytes) {
    communicator_.receive_pacer().Begin(ready);
    MOTLEY_RETURN_IF_ERROR(communicator_.Receive(from, data, bytes));
    communicator_.receive_pacer().End(std::nullopt);
    return absl::OkStatus();
  }

  // Seconds from the word's end, by the schedule. A sender ends no earlier than the receiver, so its time is the slower end's.
  absl::StatusOr<double> Transfer(int to, int64_t bytes) {
    MOTLEY_RETURN_IF_ERROR(Send(to, Now(), &bytes, sizeof(bytes)));
    const absl::Duration start = communicator_.send_pacer().end();
    MOTLEY_RETURN_IF_ERROR(Send(to, start, data_.data(), bytes));
    return absl::ToDoubleSeconds(communicator_.send_pacer().end() - start);
  }

  MeasuredLink LinkOf(int to, double small, int64_t bytes, double large) const {
    MeasuredLink link{communicator_.rank(), to, 0, 0};
    // A latency beside which the bytes do not show: then the large one alone says what is known.
    const bool apart = large > 1.01 * small;
    const double seconds = apart ? large - small : std::max(large, 1e-9);
    link.bytes_per_second = static_cast<double>(apart ? bytes - kSmallBytes : bytes) / seconds;
    if (apart) link.latency_seconds = std::max(0.0, small - static_cast<double>(kSmallBytes) / link.bytes_per_second);
    return link;
  }

  Communicator& communicator_;
  std::vector<char> data_;
};

// Everybody's links, by rank.
absl::StatusOr<std::vector<MeasuredLink>> GatherLinks(const std::vector<MeasuredLink>& mine, Communicator& communicator) {
  std::string packed(mine.size() * sizeof(MeasuredLink), '\0');
  if (!mine.empty()) std::memcpy(packed.data(), mine.data(), packed.size());
  MOTLEY_ASSIGN_OR_RETURN(const std::vector<std::string> all, communicator.GatherStrings(packed));
  std::vector<MeasuredLink> links;
  for (const std::string& of_rank : all) {
    const size_t count = of_rank.size() / sizeof(MeasuredLink), before = links.size();
    links.resize(before + count);
    if (count > 0) std::memcpy(&links[before], of_rank.data(), count * sizeof(MeasuredLink));
  }
  return links;
}

}  // namespace

std::vector<std::vector<RankPair>> LinkTurns(const std::vector<DeviceId>& devices) {
  const std::vector<std::vector<int>> nodes = RanksByNode(devices);
  std::vector<std::vector<RankPair>> turns(1);
  for (const std::vector<int>& node : nodes) {
    if (node.size() > 1) turns[0].emplace_back(node[0], node[1]);
  }
  for (const auto& round : Rounds(static_cast<int>(nodes.size()))) {
    std::vector<RankPair>& turn = turns.emplace_back();
    for (const auto& [a, b] : round) turn.emplace_back(nodes[a][0], nodes[b][0]);
  }
  std::vector<std::vector<RankPair>> alone;
  for (const std::vector<RankPair>& turn : turns) {
    for (const RankPair& pair : turn) alone.push_back({pair});
  }
  return alone.size() <= kMostPairsAlone ? alone : turns;
}

std::set<int> LinkPeers(const std::vector<DeviceId>& devices, int rank) {
  std::set<int> peers;
  for (const std::vector<RankPair>& turn : LinkTurns(devices)) {
    for (const auto& [a, b] : turn) {
      if (a == rank) peers.insert(b);
      if (b == rank) peers.insert(a);
    }
  }
  return peers;
}

absl::StatusOr<std::vector<MeasuredLink>> ProfileLinks(const std::vector<DeviceId>& devices, Communicator& communicator) {
  const std::vector<std::vector<RankPair>> turns = LinkTurns(devices);
  if (turns.empty()) return std::vector<MeasuredLink>();
  std::vector<MeasuredLink> mine;
  std::optional<HandOverTimer> timer;  // of ranks that are in a pair
  if (!LinkPeers(devices, communicator.rank()).empty()) timer.emplace(communicator);
  for (const std::vector<RankPair>& turn : turns) {
    // A barrier: nobody else's bytes are about.
    MOTLEY_RETURN_IF_ERROR(communicator.GatherScalars({0}).status());
    for (const auto& [a, b] : turn) {
      for (const auto& [from, to] : {RankPair(a, b), RankPair(b, a)}) {
        if (communicator.rank() == to) MOTLEY_RETURN_IF_ERROR(timer->Follow(from));
        if (communicator.rank() != from) continue;
        MOTLEY_ASSIGN_OR_RETURN(const MeasuredLink link, timer->Lead(to));
        mine.push_back(link);
      }
    }
  }
  return GatherLinks(mine, communicator);
}

}  // namespace motley::engine
