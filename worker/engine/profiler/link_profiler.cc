#include "worker/engine/profiler/link_profiler.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/profiler/transfer_room.h"
#include "worker/engine/profiler/transfer_timer.h"

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

// The sender leads: before its transfers it says how many bytes come, and how often; 0 = no more. That word also gives both ends
// one start.
class HandOverTimer {
 public:
  HandOverTimer(Communicator& communicator, DeviceBackend& backend) : communicator_(communicator), backend_(backend) {}

  absl::Status Allocate() {
    MOTLEY_ASSIGN_OR_RETURN(sent_, TransferRoom::Make(backend_, Lane::kSend, kMostBytes));
    received_ = sent_;  // a rank never leads and follows at once; a card's room is one stream's
    if (backend_.memory() == nullptr) return absl::OkStatus();
    MOTLEY_ASSIGN_OR_RETURN(received_, TransferRoom::Make(backend_, Lane::kReceive, kMostBytes));
    return absl::OkStatus();
  }

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
    MOTLEY_RETURN_IF_ERROR(Announce(to, kNoMore));
    return LinkOf(to, small, bytes, std::min(large, again));
  }

  absl::Status Follow(int from) {
    for (;;) {
      int64_t word = 0;
      MOTLEY_RETURN_IF_ERROR(Receive(from, Now(), sizeof(word), 1));
      MOTLEY_RETURN_IF_ERROR(received_->Read(&word, sizeof(word)));
      if (word == kNoMore) return absl::OkStatus();
      const int64_t bytes = word & kBytesMask, times = word >> kTimesShift;
      if (bytes < 1 || bytes > kMostBytes || times < 0 || times > kTimesOnStream) {
        return absl::InternalError(absl::StrCat("a link is measured with ", bytes, " bytes, ", times, " times"));
      }
      MOTLEY_RETURN_IF_ERROR(Receive(from, communicator_.receive_pacer().end(), bytes, std::max<int64_t>(1, times)));
    }
  }

 private:
  static constexpr int64_t kNoMore = 0;
  // A word's: how many bytes, and above them how often. 0 times is once.
  static constexpr int kTimesShift = 32;
  static constexpr int64_t kBytesMask = (int64_t{1} << kTimesShift) - 1;
  // In a stream transfers follow each other without a wait, and the first, which waits until the other end has read the word,
  // does not count.
  static constexpr int64_t kTimesOnStream = 3;

  static absl::Duration Now() { return absl::Nanoseconds(MonotonicNs()); }

  // Null: the lane's calls return with their work done.
  DeviceStream* StreamOf(Lane lane) const { return communicator_.Blocks(lane) ? nullptr : backend_.StreamOf(lane); }

  absl::Status Send(int to, absl::Duration ready, int64_t bytes) {
    communicator_.send_pacer().Begin(ready);
    MOTLEY_RETURN_IF_ERROR(communicator_.Send(to, sent_->data(), bytes));
    communicator_.send_pacer().End(std::nullopt);
    return absl::OkStatus();
  }

  absl::Status Announce(int to, int64_t word) {
    MOTLEY_RETURN_IF_ERROR(sent_->Write(&word, sizeof(word)));
    DeviceStream* const stream = StreamOf(Lane::kSend);
    if (stream == nullptr) return Send(to, Now(), sizeof(word));
    LaneTimer timer = TransferTimer(*stream, communicator_.send_pacer(), communicator_);
    timer.Run([&] { return communicator_.Send(to, sent_->data(), sizeof(word)); });
    return timer.Await();
  }

  absl::Status Receive(int from, absl::Duration ready, int64_t bytes, int64_t times) {
    if (DeviceStream* const stream = StreamOf(Lane::kReceive); stream != nullptr) {
      LaneTimer timer = TransferTimer(*stream, communicator_.receive_pacer(), communicator_);
      for (int64_t i = 0; i < times; ++i) {
        timer.Run([this, from, bytes] { return communicator_.Receive(from, received_->data(), bytes); });
      }
      return timer.Await();
    }
    for (int64_t i = 0; i < times; ++i) {
      communicator_.receive_pacer().Begin(ready);
      MOTLEY_RETURN_IF_ERROR(communicator_.Receive(from, received_->data(), bytes));
      communicator_.receive_pacer().End(std::nullopt);
      ready = communicator_.receive_pacer().end();
    }
    return absl::OkStatus();
  }

  // Seconds from the word's end, by the schedule. A sender ends no earlier than the receiver, so its time is the slower end's.
  absl::StatusOr<double> Transfer(int to, int64_t bytes) {
    if (DeviceStream* const stream = StreamOf(Lane::kSend); stream != nullptr) return TransferOnStream(*stream, to, bytes);
    MOTLEY_RETURN_IF_ERROR(Announce(to, bytes));
    const absl::Duration start = communicator_.send_pacer().end();
    MOTLEY_RETURN_IF_ERROR(Send(to, start, bytes));
    return absl::ToDoubleSeconds(communicator_.send_pacer().end() - start);
  }

  // Seconds between the stream's marks, of the fastest.
  absl::StatusOr<double> TransferOnStream(DeviceStream& stream, int to, int64_t bytes) {
    MOTLEY_RETURN_IF_ERROR(Announce(to, bytes | kTimesOnStream << kTimesShift));
    LaneTimer timer = TransferTimer(stream, communicator_.send_pacer(), communicator_);
    timer.Settle();
    std::vector<LaneTime> times;
    for (int64_t i = 0; i < kTimesOnStream; ++i) {
      times.push_back(timer.Measure(std::nullopt, [&] { return communicator_.Send(to, sent_->data(), bytes); }));
    }
    MOTLEY_RETURN_IF_ERROR(timer.Await());
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 1; i < times.size(); ++i) best = std::min(best, times[i].seconds());
    return best;
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
  DeviceBackend& backend_;
  std::shared_ptr<TransferRoom> sent_, received_;
};

// By rank, of nodes; each node's in their order.
std::vector<RankPair> PairsInside(const LinkPlan& plan, const std::vector<std::vector<int>>& nodes) {
  if (!plan.inside.empty()) return plan.inside;
  std::vector<RankPair> pairs;
  for (const std::vector<int>& node : nodes) {
    if (node.size() > 1) pairs.emplace_back(node[0], node[1]);
  }
  return pairs;
}

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

std::vector<std::vector<RankPair>> LinkTurns(const LinkPlan& plan) {
  const std::vector<std::vector<int>> nodes = RanksByNode(plan.devices);
  std::vector<std::vector<RankPair>> turns(1);
  std::map<NodeName, size_t> pairs_of;  // a node has one pair in a turn
  for (const RankPair& pair : PairsInside(plan, nodes)) {
    const size_t turn = pairs_of[NodeOf(plan.devices[pair.first])]++;
    if (turn == turns.size()) turns.emplace_back();
    turns[turn].push_back(pair);
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

std::set<int> LinkPeers(const LinkPlan& plan, int rank) {
  std::set<int> peers;
  for (const std::vector<RankPair>& turn : LinkTurns(plan)) {
    for (const auto& [a, b] : turn) {
      if (a == rank) peers.insert(b);
      if (b == rank) peers.insert(a);
    }
  }
  return peers;
}

absl::StatusOr<std::vector<MeasuredLink>> ProfileLinks(const LinkPlan& plan, DeviceBackend& backend, Communicator& communicator) {
  const std::vector<std::vector<RankPair>> turns = LinkTurns(plan);
  if (turns.empty()) return std::vector<MeasuredLink>();
  std::vector<MeasuredLink> mine;
  std::optional<HandOverTimer> timer;  // of ranks that are in a pair
  if (!LinkPeers(plan, communicator.rank()).empty()) {
    timer.emplace(communicator, backend);
    MOTLEY_RETURN_IF_ERROR(timer->Allocate());
  }
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
