#include "worker/engine/gloo_communicator.h"

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <atomic>
#include <exception>
#include <fstream>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/status_macros.h"
#include "worker/engine/gloo_store.h"
#include "worker/engine/link_pacer.h"
#include "worker/engine/monotonic.h"
#include "worker/engine/ring_engine.h"

namespace motley::engine {
namespace {

// What the ranks tell each other before the first collective.
struct PeerInfo {
  std::string boot_id;  // equal: the same machine, so CLOCK_MONOTONIC may be compared
  double slowest_bytes_per_second = 0;
};

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id.empty() ? "unknown" : id;
}

absl::StatusOr<std::vector<PeerInfo>> ExchangePeerInfo(const CommunicatorOptions& options, double slowest, RankHost& host) {
  const int world = static_cast<int>(options.devices.size());
  const std::string base = absl::StrCat(options.key_prefix, "peer/");
  MOTLEY_RETURN_IF_ERROR(host.KvSet(absl::StrCat(base, options.rank), absl::StrCat(BootId(), " ", slowest)));
  std::vector<PeerInfo> peers(world);
  for (int r = 0; r < world; ++r) {
    MOTLEY_ASSIGN_OR_RETURN(const std::string text, host.KvGet(absl::StrCat(base, r), options.connect_timeout));
    const std::vector<std::string> parts = absl::StrSplit(text, ' ');
    if (parts.size() != 2 || !absl::SimpleAtod(parts[1], &peers[r].slowest_bytes_per_second)) {
      return absl::InternalError(absl::StrCat("rendezvous: ", options.devices[r].value(), " introduced itself as '", text, "'"));
    }
    peers[r].boot_id = parts[0];
  }
  return peers;
}

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(const CommunicatorOptions& options, LinkClock& links)
      : options_(options), pacer_(options.device, options.devices, options.rank, links) {}

  absl::Status Connect(RankHost& host) {
    signal(SIGPIPE, SIG_IGN);  // Gloo writes with bare writev: a lost peer must be an error, not a death
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<PeerInfo> peers,
                            ExchangePeerInfo(options_, pacer_.slowest_bytes_per_second(), host));
    for (const PeerInfo& peer : peers) {
      const double rate = peer.slowest_bytes_per_second;
      if (rate > 0 && (slowest_ == 0 || rate < slowest_)) slowest_ = rate;
    }
    try {
      gloo::transport::tcp::attr attributes(options_.data_addresses[rank()].c_str());
      std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
      context_ = std::make_shared<gloo::rendezvous::Context>(rank(), world());
      context_->setTimeout(absl::ToChronoMilliseconds(options_.connect_timeout));
      GlooStore store(host, absl::StrCat(options_.key_prefix, "gloo/"), options_.connect_timeout);
      context_->connectFullMesh(store, device);
      context_->setTimeout(absl::ToChronoMilliseconds(options_.deadline));
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat("connecting ", options_.devices[rank()].value(), " at ",
                                                 options_.data_addresses[rank()], " with its ", world() - 1,
                                                 " peers: ", error.what()));
    }
    const bool shared_clock = peers[LeftOf(rank())].boot_id == peers[rank()].boot_id;
    ring_ = std::make_unique<RingEngine>(*context_, pacer_, LeftOf(rank()), (rank() + 1) % world(), shared_clock,
                                         absl::ToChronoMilliseconds(options_.deadline));
    return absl::OkStatus();
  }

  int rank() const override { return options_.rank; }
  int world() const override { return static_cast<int>(options_.devices.size()); }

  absl::StatusOr<absl::Duration> AllGatherV(void* array, DType dtype, const std::vector<int64_t>& bounds,
                                            absl::Duration ready) override {
    return Pass("all-gather", array, SizeOfBytes(dtype), bounds, rank(), RingCombine::kCopy, ready);
  }

  absl::StatusOr<absl::Duration> ReduceScatterV(void* array, DType dtype, const std::vector<int64_t>& bounds,
                                                absl::Duration ready) override {
    const RingCombine combine = dtype == DType::kFloat64 ? RingCombine::kAddFloat64 : RingCombine::kAddFloat32;
    return Pass("reduce-scatter", array, SizeOfBytes(dtype), bounds, LeftOf(rank()), combine, ready);
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
    if (context_ == nullptr) return;
    try {
      context_->closeConnections();
    } catch (const std::exception&) {
      // Closing what is closed already; the peers have noticed.
    }
  }

 private:
  int LeftOf(int r) const { return (r + world() - 1) % world(); }
  static absl::Duration Now() { return absl::Nanoseconds(MonotonicNs()); }

  absl::StatusOr<absl::Duration> Pass(const char* what, void* array, int64_t element_bytes, const std::vector<int64_t>& bounds,
                                      int first_owner, RingCombine combine, absl::Duration ready) {
    if (static_cast<int>(bounds.size()) != world() + 1) {
      return absl::InternalError(absl::StrCat(what, ": ", bounds.size(), " bounds for ", world(), " ranks"));
    }
    {
      absl::MutexLock lock(&mutex_);
      if (!abort_reason_.empty()) return absl::UnavailableError(absl::StrCat(what, ": ", abort_reason_));
    }
    if (world() == 1) return ready;
    const int64_t segment = SegmentBytes(bounds.back() * element_bytes, element_bytes, slowest_);
    const RingStream stream = MakeRingStream(bounds, element_bytes, first_owner, segment);
    const RingResult result = ring_->Pass(stream, static_cast<char*>(array), combine, absl::ToInt64Nanoseconds(ready), progress_);
    if (!result.error.empty()) return Failed(what, result.error);
    lateness_seconds_ += result.lateness_ns * 1e-9;
    return absl::Nanoseconds(result.end_ns);
  }

  // Gloo's errors name ports; ours name devices.
  absl::Status Failed(const char* what, const std::string& error) {
    Abort(absl::StrCat("an earlier ", what, " failed"));
    absl::MutexLock lock(&mutex_);
    return absl::UnavailableError(
        absl::StrCat(what, " between ", options_.devices[LeftOf(rank())].value(), ", ", options_.devices[rank()].value(), " and ",
                     options_.devices[(rank() + 1) % world()].value(), ": a peer was lost (", error, ")"));
  }

  const CommunicatorOptions options_;
  LinkPacer pacer_;
  double slowest_ = 0;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::unique_ptr<RingEngine> ring_;  // before context_ in destruction: its buffers belong to the context
  absl::Mutex mutex_;
  std::string abort_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectCommunicator(const CommunicatorOptions& options, RankHost& host,
                                                                  LinkClock& links) {
  auto communicator = std::make_unique<GlooCommunicator>(options, links);
  if (options.devices.size() > 1) MOTLEY_RETURN_IF_ERROR(communicator->Connect(host));
  return communicator;
}

}  // namespace motley::engine
