#include "worker/engine/transport/tcp_communicator.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/transport/channel.h"
#include "worker/engine/transport/first_cause.h"
#include "worker/engine/transport/hand_over.h"
#include "worker/engine/transport/introduction.h"
#include "worker/engine/transport/link_pacer.h"
#include "worker/engine/transport/link_rates.h"
#include "worker/engine/transport/meeting.h"
#include "worker/engine/transport/ring_engine.h"
#include "worker/engine/transport/ring_place.h"
#include "worker/engine/transport/segment_socket.h"

namespace motley::engine {
namespace {

// A ring that this rank is in.
struct Ring {
  RingPlace place;
  Channel channel = 0;
  double slowest_bytes_per_second = 0;
  std::unique_ptr<LinkPacer> pacer{};
  std::unique_ptr<RingEngine> engine{};  // null: no other member
};

absl::Status CheckOptions(const CommunicatorOptions& options) {
  const int world = static_cast<int>(options.devices.size());
  for (size_t g = 0; g < options.groups.size(); ++g) {
    std::set<int> members;
    for (const int r : options.groups[g]) {
      if (r < 0 || r >= world) return absl::InternalError(absl::StrCat("group ", g, " has rank ", r, " of ", world, " ranks"));
      if (!members.insert(r).second) return absl::InternalError(absl::StrCat("group ", g, " has rank ", r, " twice"));
    }
  }
  for (const std::set<int>* peers : {&options.sends_to, &options.receives_from}) {
    for (const int r : *peers) {
      if (r >= 0 && r < world && r != options.rank) continue;
      return absl::InternalError(absl::StrCat("rank ", options.rank, " of ", world, " cannot hand over to or from rank ", r));
    }
  }
  return absl::OkStatus();
}

class TcpCommunicator : public Communicator {
 public:
  explicit TcpCommunicator(const CommunicatorOptions& options) : options_(options) {
    host_exchange_ = Ring{.place = *PlaceOf(rank(), EveryRank(world())), .channel = kHostExchangeChannel};
    for (int g = 0; g < static_cast<int>(options.groups.size()); ++g) {
      const std::optional<RingPlace> place = PlaceOf(rank(), options.groups[g]);
      if (place) rings_[g] = Ring{.place = *place, .channel = GroupChannel(g)};
    }
  }

  // Leaves with a word on the host exchange's connections, which nobody reads: who closes one without it was lost.
  ~TcpCommunicator() override {
    if (!first_cause_.NotAborted("").ok()) return;
    for (auto& [at, socket] : sockets_) {
      if (at.second == kHostExchangeChannel) socket.SayFarewell();
    }
  }

  // What everybody said of himself, by rank.
  absl::StatusOr<std::vector<Introduction>> Connect(RankHost& host, LinkClock& links) {
    MOTLEY_ASSIGN_OR_RETURN(Meeting meeting, Meeting::Open(rank(), options_.devices[rank()], options_.data_addresses[rank()]));
    MOTLEY_ASSIGN_OR_RETURN(std::vector<Introduction> all, Introduce(options_, meeting.point(), host));
    std::vector<MeetingPeer> peers;
    for (const auto& [r, channel] : Connections()) peers.push_back({r, channel, options_.devices[r], all[r].point});
    MOTLEY_ASSIGN_OR_RETURN(Met met, meeting.Meet(peers, options_.meeting_timeout, options_.stopped));
    for (const std::string& note : met.notes) host.OnLog(note);
    if (met.turned_away > 0) {
      host.OnLog(absl::StrCat("turned away ", met.turned_away, " connections to ", meeting.point().address, ":",
                              meeting.point().port, " that are no ranks of this epoch"));
    }
    for (auto& [at, socket] : met.sockets) {
      MOTLEY_ASSIGN_OR_RETURN(std::optional<MessageCodes> codes, CodesWith(at.first, met.keys.at(at)));
      sockets_.try_emplace(at, std::move(socket), std::move(codes));
    }
    StartRing(host_exchange_, all, links);
    for (auto& [group, ring] : rings_) StartRing(ring, all, links);
    for (const int to : options_.sends_to) {
      senders_.emplace(to, std::make_unique<HandOverSender>(PathOfHandOver(rank(), to, all, links), ring_segment_bytes_));
    }
    for (const int from : options_.receives_from) {
      receivers_.emplace(from, std::make_unique<HandOverReceiver>(PathOfHandOver(from, rank(), all, links)));
    }
    return all;
  }

  int rank() const override { return options_.rank; }
  int world() const override { return static_cast<int>(options_.devices.size()); }

  absl::Status AllGather(int group, void* array, DType dtype, const Owners& owners) override {
    return Collective("all-gather", group, static_cast<char*>(array), dtype, owners, {RingCombine::kCopy});
  }

  absl::Status ReduceScatter(int group, void* array, DType dtype, const Owners& owners) override {
    if (dtype != DType::kFloat64 && dtype != DType::kFloat32) {
      return absl::InternalError(
          absl::StrCat("reduce-scatter: TCP sums in float32 and float64, not in ", std::string(DTypeName(dtype))));
    }
    return Collective("reduce-scatter", group, static_cast<char*>(array), dtype, owners, {SumOf(dtype)});
  }

  // Each element is summed at one member, whose sum the others are given.
  absl::Status AllReduce(int group, void* array, DType dtype, int64_t elements) override {
    const auto found = rings_.find(group);
    const Owners owners = EvenOwners(elements, found == rings_.end() ? 1 : found->second.place.size());
    return Collective("all-reduce", group, static_cast<char*>(array), dtype, owners, {SumOf(dtype), RingCombine::kCopy});
  }

  absl::Status Send(int peer, const void* data, int64_t bytes) override {
    const auto sender = senders_.find(peer);
    if (sender == senders_.end()) return absl::InternalError(absl::StrCat("rank ", rank(), " sends to no rank ", peer));
    return HandOver(absl::StrCat("sending to ", options_.devices[peer].value()), send_pacer_, [&](int64_t ready_ns) {
      return sender->second->Send(static_cast<const char*>(data), bytes, ready_ns, progress_);
    });
  }

  absl::Status Receive(int peer, void* data, int64_t bytes) override {
    const auto receiver = receivers_.find(peer);
    if (receiver == receivers_.end()) return absl::InternalError(absl::StrCat("rank ", rank(), " receives from no rank ", peer));
    return HandOver(absl::StrCat("receiving from ", options_.devices[peer].value()), receive_pacer_, [&](int64_t ready_ns) {
      return receiver->second->Receive(static_cast<char*>(data), bytes, ready_ns, progress_);
    });
  }

  absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) override {
    const int64_t count = static_cast<int64_t>(mine.size());
    std::vector<double> all(count * world());
    std::copy(mine.begin(), mine.end(), all.begin() + count * rank());
    std::vector<int64_t> bounds(world() + 1);
    for (int r = 0; r <= world(); ++r) bounds[r] = count * r;
    MOTLEY_RETURN_IF_ERROR(Exchange("exchange of scalars", reinterpret_cast<char*>(all.data()), sizeof(double), bounds));
    std::vector<std::vector<double>> result(world());
    for (int r = 0; r < world(); ++r) result[r].assign(all.begin() + count * r, all.begin() + count * (r + 1));
    return result;
  }

  absl::StatusOr<std::vector<std::string>> GatherStrings(const std::string& mine) override {
    MOTLEY_ASSIGN_OR_RETURN(const auto sizes, GatherScalars({static_cast<double>(mine.size())}));
    std::vector<int64_t> bounds(1, 0);
    for (const auto& size : sizes) bounds.push_back(bounds.back() + static_cast<int64_t>(size[0]));
    std::string all(bounds.back(), '\0');
    all.replace(bounds[rank()], mine.size(), mine);
    MOTLEY_RETURN_IF_ERROR(Exchange("exchange of texts", all.data(), 1, bounds));
    std::vector<std::string> result(world());
    for (int r = 0; r < world(); ++r) result[r] = all.substr(bounds[r], bounds[r + 1] - bounds[r]);
    return result;
  }

  Transport TransportOf(int group) const override {
    const auto ring = rings_.find(group);
    return ring == rings_.end() || ring->second.place.size() == 1 ? Transport::kNone : Transport::kTcp;
  }
  Transport TransportTo(int peer) const override { return senders_.contains(peer) ? Transport::kTcp : Transport::kNone; }
  Transport TransportFrom(int peer) const override { return receivers_.contains(peer) ? Transport::kTcp : Transport::kNone; }

  // Each rank has two neighbours in the host exchange's ring: whoever is lost, two notice it, and their end wakes the others.
  absl::Status Health() override {
    MOTLEY_RETURN_IF_ERROR(first_cause_.NotAborted("health"));
    for (auto& [at, socket] : sockets_) {
      if (at.second != kHostExchangeChannel) continue;
      const absl::Status ended = socket.Health();
      if (!ended.ok()) return Lost(PeerAt(at.first, at.second), ended);
    }
    return absl::OkStatus();
  }

  void Abort(const std::string& reason) override { AbortIfFirst(reason); }

 private:
  // ---- connecting ----

  // A peer in several roles has several; two members of a ring of two are each other's neighbours once.
  std::set<std::pair<int, Channel>> Connections() const {
    std::set<std::pair<int, Channel>> connections;
    const auto add = [&](const Ring& ring) {
      for (const int r : {ring.place.left(), ring.place.right()}) {
        if (r != rank()) connections.emplace(r, ring.channel);
      }
    };
    add(host_exchange_);
    for (const auto& [group, ring] : rings_) add(ring);
    for (const int to : options_.sends_to) connections.emplace(to, HandOverChannel(rank(), to));
    for (const int from : options_.receives_from) connections.emplace(from, HandOverChannel(from, rank()));
    return connections;
  }

  // None: messages of this pair are not authenticated.
  absl::StatusOr<std::optional<MessageCodes>> CodesWith(int peer, const MessageKeys& keys) const {
    const std::vector<std::string>& addresses = options_.data_addresses;
    if (!Authenticates(options_.authentication, addresses[rank()], addresses[peer])) return std::nullopt;
    MOTLEY_ASSIGN_OR_RETURN(Gmac sending, Gmac::Create(keys.sending));
    MOTLEY_ASSIGN_OR_RETURN(Gmac receiving, Gmac::Create(keys.receiving));
    const std::vector<DeviceId>& devices = options_.devices;
    return MessageCodes{std::move(sending), std::move(receiving), {devices[peer].value(), devices[rank()].value()}};
  }

  void StartRing(Ring& ring, const std::vector<Introduction>& all, LinkClock& links) {
    if (ring.place.size() == 1) return;
    const int left = ring.place.left(), right = ring.place.right();
    ring.slowest_bytes_per_second = SlowestInRing(options_.devices, RatesOf(all), ring.place.members);
    ring.pacer = std::make_unique<LinkPacer>(options_.device, options_.devices, rank(), LinkPacer::Path{right, left}, links);
    const auto neighbour = [&](int r) -> RingEngine::Neighbour {
      return {PeerAt(r, ring.channel), all[r].boot_id == all[rank()].boot_id};
    };
    ring.engine = std::make_unique<RingEngine>(neighbour(left), neighbour(right), *ring.pacer, options_.deadline);
  }

  HandOverPath PathOfHandOver(int from, int to, const std::vector<Introduction>& all, LinkClock& links) {
    const LinkPacer::Path path = from == rank() ? LinkPacer::Path{to, std::nullopt} : LinkPacer::Path{std::nullopt, from};
    return {PeerAt(from == rank() ? to : from, HandOverChannel(from, to)),
            LinkPacer(options_.device, options_.devices, rank(), path, links),
            SlowestOnPath(options_.devices, RatesOf(all), from, to), all[from].boot_id == all[to].boot_id, options_.deadline};
  }

  Peer PeerAt(int r, Channel channel) { return {options_.devices[r].value(), &sockets_.at({r, channel})}; }

  static std::vector<LinkRates> RatesOf(const std::vector<Introduction>& all) {
    std::vector<LinkRates> rates;
    for (const Introduction& one : all) rates.push_back(one.rates);
    return rates;
  }

  // ---- calls ----

  // Passes around the ring, one after another.
  absl::Status Collective(const char* what, int group, char* array, DType dtype, const Owners& owners,
                          std::initializer_list<RingCombine> passes) {
    const auto found = rings_.find(group);
    if (found == rings_.end()) return absl::InternalError(absl::StrCat(what, ": rank ", rank(), " is in no group ", group));
    const Ring& ring = found->second;
    if (static_cast<int>(owners.size()) != ring.place.size()) {
      return absl::InternalError(
          absl::StrCat(what, ": ", owners.size(), " owners for the ", ring.place.size(), " members of group ", group));
    }
    const int64_t element_bytes = SizeOfBytes(dtype);
    const int64_t segment_bytes = SegmentBytesOf(ring, owners, element_bytes);
    ring_segment_bytes_ = ring.slowest_bytes_per_second > 0 ? segment_bytes : 0;
    const absl::Cleanup over = [this] { ring_segment_bytes_ = 0; };
    const absl::Duration start = collective_pacer_.start();
    absl::Duration end = start;
    for (const RingCombine combine : passes) {
      const int first_owner = combine == RingCombine::kCopy ? ring.place.index : ring.place.LeftIndex();
      const RingStream stream = MakeRingStream(owners, element_bytes, first_owner, segment_bytes);
      MOTLEY_ASSIGN_OR_RETURN(end, Pass(what, ring, stream, array, combine, end));
    }
    collective_pacer_.Took(start, end);
    return absl::OkStatus();
  }

  absl::Status Exchange(const char* what, char* array, int64_t element_bytes, const std::vector<int64_t>& bounds) {
    const Owners owners = OwnersOf(bounds);
    const RingStream stream =
        MakeRingStream(owners, element_bytes, rank(), SegmentBytesOf(host_exchange_, owners, element_bytes));
    return Pass(what, host_exchange_, stream, array, RingCombine::kCopy, clock_.Now()).status();
  }

  static int64_t SegmentBytesOf(const Ring& ring, const Owners& owners, int64_t element_bytes) {
    return SegmentBytes(ElementsOf(owners) * element_bytes, element_bytes, ring.slowest_bytes_per_second);
  }

  absl::StatusOr<absl::Duration> Pass(const char* what, const Ring& ring, const RingStream& stream, char* array,
                                      RingCombine combine, absl::Duration ready) {
    MOTLEY_RETURN_IF_ERROR(first_cause_.NotAborted(what));
    if (ring.engine == nullptr) return ready;
    return EndOf(what, ring.engine->Pass(stream, array, combine, absl::ToInt64Nanoseconds(ready), progress_));
  }

  template <typename Transfer>
  absl::Status HandOver(const std::string& what, TransferPacer& pacer, Transfer transfer) {
    MOTLEY_RETURN_IF_ERROR(first_cause_.NotAborted(what));
    const absl::StatusOr<TransferTimes> times = transfer(absl::ToInt64Nanoseconds(pacer.start()));
    MOTLEY_ASSIGN_OR_RETURN(const absl::Duration end, EndOf(what, times));
    pacer.Took(absl::Nanoseconds(times->begin_ns), end);
    return absl::OkStatus();
  }

  absl::StatusOr<absl::Duration> EndOf(const std::string& what, const absl::StatusOr<TransferTimes>& times) {
    if (!times.ok()) return Failed(what, times.status());
    lateness_seconds_ += times->lateness_ns * 1e-9;
    return absl::Nanoseconds(times->end_ns);
  }

  // ---- the end ----

  // The first cause ends everything.
  absl::Status Failed(const std::string& what, const absl::Status& error) {
    if (!AbortIfFirst(absl::StrCat("an earlier ", what, " failed: ", error.message()))) return first_cause_.NotAborted(what);
    return WithFault(absl::UnavailableError(absl::StrCat(what, ": ", error.message())), FaultOf(error));
  }

  bool AbortIfFirst(const std::string& reason) {
    if (!first_cause_.Set(reason)) return false;
    if (host_exchange_.engine != nullptr) host_exchange_.engine->Abort();
    for (const auto& [group, ring] : rings_) {
      if (ring.engine != nullptr) ring.engine->Abort();
    }
    for (const auto& [peer, sender] : senders_) sender->Abort();
    for (const auto& [peer, receiver] : receivers_) receiver->Abort();
    return true;
  }

  const CommunicatorOptions options_;
  std::atomic<int64_t> ring_segment_bytes_{0};  // of the paced collective under way
  // Sockets before what uses them: that goes first.
  std::map<std::pair<int, Channel>, SegmentSocket> sockets_;  // by rank and channel
  Ring host_exchange_;
  std::map<int, Ring> rings_;  // by group
  std::map<int, std::unique_ptr<HandOverSender>> senders_;
  std::map<int, std::unique_ptr<HandOverReceiver>> receivers_;
  FirstCause first_cause_;
};

}  // namespace

absl::StatusOr<ConnectedTcp> ConnectTcp(const CommunicatorOptions& options, RankHost& host, LinkClock& links) {
  MOTLEY_RETURN_IF_ERROR(CheckOptions(options));
  auto communicator = std::make_unique<TcpCommunicator>(options);
  std::vector<Introduction> all(1);
  if (options.devices.size() > 1) {
    MOTLEY_ASSIGN_OR_RETURN(all, communicator->Connect(host, links));
  }
  return ConnectedTcp{std::move(communicator), std::move(all)};
}

}  // namespace motley::engine
