#include "worker/engine/transport/ring_communicator.h"

#include <fstream>
#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/transport/link_pacer.h"
#include "worker/engine/transport/meeting.h"
#include "worker/engine/transport/ring_engine.h"

namespace motley::engine {
namespace {

// What the ranks tell each other before the first collective.
struct Introduction {
  std::string boot_id;  // equal: the same machine, so CLOCK_MONOTONIC may be compared
  double slowest_bytes_per_second = 0;
  MeetingPoint point;
};

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id.empty() ? "unknown" : id;
}

bool ParseIntroduction(const std::string& text, Introduction& introduction) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  if (parts.size() != 4 || !absl::SimpleAtod(parts[1], &introduction.slowest_bytes_per_second) ||
      !absl::SimpleAtoi(parts[2], &introduction.point.port)) {
    return false;
  }
  introduction.boot_id = parts[0];
  introduction.point.secret = absl::HexStringToBytes(parts[3]);
  return introduction.point.secret.size() == kSecretBytes;
}

// By rank. Nobody is called before everybody is here, so that the calls' patience is not spent on ranks that still start.
absl::StatusOr<std::vector<Introduction>> Introduce(const CommunicatorOptions& options, double slowest, const MeetingPoint& point,
                                                    RankHost& host) {
  const int world = static_cast<int>(options.devices.size());
  const std::string base = absl::StrCat(options.key_prefix, "peer/");
  MOTLEY_RETURN_IF_ERROR(host.KvSet(absl::StrCat(base, options.rank), absl::StrCat(BootId(), " ", slowest, " ", point.port, " ",
                                                                                   absl::BytesToHexString(point.secret))));
  const absl::Duration deadline = absl::Nanoseconds(MonotonicNs()) + options.connect_timeout;
  std::vector<Introduction> all(world);
  for (int r = 0; r < world; ++r) {
    const absl::Duration left = std::max(absl::ZeroDuration(), deadline - absl::Nanoseconds(MonotonicNs()));
    const absl::StatusOr<std::string> text = host.KvGet(absl::StrCat(base, r), left);
    if (absl::IsCancelled(text.status())) return text.status();
    if (!text.ok()) {
      return WithFault(absl::UnavailableError(absl::StrCat(
                           options.devices[r].value(), " did not come to the meeting of the ranks: ", text.status().message())),
                       Fault::kPeer);
    }
    if (!ParseIntroduction(*text, all[r])) {
      return absl::InternalError(absl::StrCat("rendezvous: ", options.devices[r].value(), " introduced itself as '", *text, "'"));
    }
    all[r].point.address = options.data_addresses[r];
  }
  return all;
}

class RingCommunicator : public Communicator {
 public:
  RingCommunicator(const CommunicatorOptions& options, LinkClock& links)
      : options_(options), links_(options.device, options.devices, options.rank, links) {}

  absl::Status Connect(RankHost& host) {
    MOTLEY_ASSIGN_OR_RETURN(Meeting meeting, Meeting::Open(rank(), options_.devices[rank()], options_.data_addresses[rank()]));
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<Introduction> all,
                            Introduce(options_, links_.slowest_bytes_per_second(), meeting.point(), host));
    for (const Introduction& one : all) {
      const double rate = one.slowest_bytes_per_second;
      if (rate > 0 && (slowest_ == 0 || rate < slowest_)) slowest_ = rate;
    }
    std::vector<MeetingPeer> neighbours;  // the ring needs no others
    for (const int r : std::set<int>{LeftOf(rank()), RightOf(rank())}) {
      neighbours.push_back({r, options_.devices[r], all[r].point});
    }
    MOTLEY_ASSIGN_OR_RETURN(Met met, meeting.Meet(neighbours, options_.connect_timeout, options_.stopped));
    if (met.turned_away > 0) {
      host.OnLog(absl::StrCat("turned away ", met.turned_away, " connections to ", meeting.point().address, ":",
                              meeting.point().port, " that are no ranks of this epoch"));
    }
    const bool shared_clock = all[LeftOf(rank())].boot_id == all[rank()].boot_id;
    sockets_ = std::move(met.sockets);
    const auto neighbour = [this](int r) { return RingNeighbour{options_.devices[r].value(), sockets_.at(r).get()}; };
    ring_ = std::make_unique<RingEngine>(neighbour(LeftOf(rank())), neighbour(RightOf(rank())), links_, shared_clock,
                                         options_.deadline);
    return absl::OkStatus();
  }

  int rank() const override { return options_.rank; }
  int world() const override { return static_cast<int>(options_.devices.size()); }

  absl::Status AllGatherV(void* array, DType dtype, const std::vector<int64_t>& bounds) override {
    MOTLEY_ASSIGN_OR_RETURN(const absl::Duration end,
                            Pass("all-gather", array, SizeOfBytes(dtype), bounds, rank(), RingCombine::kCopy, pacer_.start()));
    pacer_.EndAt(end);
    return absl::OkStatus();
  }

  absl::Status ReduceScatterV(void* array, DType dtype, const std::vector<int64_t>& bounds) override {
    const RingCombine combine = dtype == DType::kFloat64 ? RingCombine::kAddFloat64 : RingCombine::kAddFloat32;
    MOTLEY_ASSIGN_OR_RETURN(const absl::Duration end,
                            Pass("reduce-scatter", array, SizeOfBytes(dtype), bounds, LeftOf(rank()), combine, pacer_.start()));
    pacer_.EndAt(end);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) override {
    const int64_t count = static_cast<int64_t>(mine.size());
    std::vector<double> all(count * world());
    std::copy(mine.begin(), mine.end(), all.begin() + count * rank());
    std::vector<int64_t> bounds(world() + 1);
    for (int r = 0; r <= world(); ++r) bounds[r] = count * r;
    MOTLEY_RETURN_IF_ERROR(
        Pass("exchange of scalars", all.data(), sizeof(double), bounds, rank(), RingCombine::kCopy, Now()).status());
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
    MOTLEY_RETURN_IF_ERROR(Pass("exchange of texts", all.data(), 1, bounds, rank(), RingCombine::kCopy, Now()).status());
    std::vector<std::string> result(world());
    for (int r = 0; r < world(); ++r) result[r] = all.substr(bounds[r], bounds[r + 1] - bounds[r]);
    return result;
  }

  void Abort(const std::string& reason) override {
    {
      absl::MutexLock lock(&mutex_);
      if (!abort_reason_.empty()) return;
      abort_reason_ = reason;
    }
    if (ring_ != nullptr) ring_->Abort();
  }

 private:
  int LeftOf(int r) const { return (r + world() - 1) % world(); }
  int RightOf(int r) const { return (r + 1) % world(); }
  static absl::Duration Now() { return absl::Nanoseconds(MonotonicNs()); }

  absl::StatusOr<absl::Duration> Pass(const char* what, void* array, int64_t element_bytes, const std::vector<int64_t>& bounds,
                                      int first_owner, RingCombine combine, absl::Duration ready) {
    if (static_cast<int>(bounds.size()) != world() + 1) {
      return absl::InternalError(absl::StrCat(what, ": ", bounds.size(), " bounds for ", world(), " ranks"));
    }
    MOTLEY_RETURN_IF_ERROR(NotAborted(what));
    if (world() == 1) return ready;
    const int64_t segment = SegmentBytes(bounds.back() * element_bytes, element_bytes, slowest_);
    const RingStream stream = MakeRingStream(bounds, element_bytes, first_owner, segment);
    const absl::StatusOr<RingTimes> times =
        ring_->Pass(stream, static_cast<char*>(array), combine, absl::ToInt64Nanoseconds(ready), progress_);
    if (!times.ok()) return Failed(what, times.status());
    lateness_seconds_ += times->lateness_ns * 1e-9;
    return absl::Nanoseconds(times->end_ns);
  }

  absl::Status Failed(const char* what, const absl::Status& error) {
    MOTLEY_RETURN_IF_ERROR(NotAborted(what));  // by another thread: then no neighbour was lost
    Abort(absl::StrCat("an earlier ", what, " failed"));
    return WithFault(absl::UnavailableError(absl::StrCat(what, ": ", error.message())), FaultOf(error));
  }

  absl::Status NotAborted(const char* what) {
    absl::MutexLock lock(&mutex_);
    if (abort_reason_.empty()) return absl::OkStatus();
    return WithFault(absl::UnavailableError(absl::StrCat(what, ": ", abort_reason_)), Fault::kPeer);
  }

  const CommunicatorOptions options_;
  LinkPacer links_;
  double slowest_ = 0;
  std::map<int, FileDescriptor> sockets_;  // by rank
  std::unique_ptr<RingEngine> ring_;       // after its sockets: it goes first
  absl::Mutex mutex_;
  std::string abort_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectRing(const CommunicatorOptions& options, RankHost& host, LinkClock& links) {
  auto communicator = std::make_unique<RingCommunicator>(options, links);
  if (options.devices.size() > 1) MOTLEY_RETURN_IF_ERROR(communicator->Connect(host));
  return communicator;
}

}  // namespace motley::engine
