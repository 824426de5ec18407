#include "worker/engine/transport/nccl_communicator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"
#include "worker/engine/transport/first_cause.h"
#include "worker/engine/transport/nccl_collectives.h"
#include "worker/engine/transport/nccl_mesh.h"

namespace motley::engine {
namespace {

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(const CommunicatorOptions& options, std::unique_ptr<Communicator> host, std::unique_ptr<NcclMesh> mesh)
      : options_(options),
        patience_{options.deadline, [this] { return Health(); }},
        host_(std::move(host)),
        mesh_(std::move(mesh)),
        collectives_(*options_.nccl.api, *options_.memory, StreamOf(Lane::kCollective), options_.nccl.costs) {
    host_->set_progress([this] { Progress(); });
  }

  int rank() const override { return options_.rank; }
  int world() const override { return static_cast<int>(options_.devices.size()); }

  absl::Status AllGather(int group, void* array, DType dtype, const Owners& owners) override {
    NcclComm* const comm = mesh_->OfGroup(group);
    if (comm == nullptr) {
      return ByHost(collective_pacer_, host_->collective_pacer(), [&] { return host_->AllGather(group, array, dtype, owners); });
    }
    MOTLEY_ASSIGN_OR_RETURN(const int member, MemberOf("all-gather", group, owners));
    return ByNccl("all-gather", Lane::kCollective,
                  [&] { return collectives_.AllGather(*comm, member, static_cast<char*>(array), dtype, owners, patience_); });
  }

  absl::Status ReduceScatter(int group, void* array, DType dtype, const Owners& owners) override {
    NcclComm* const comm = mesh_->OfGroup(group);
    if (comm == nullptr) {
      return ByHost(collective_pacer_, host_->collective_pacer(),
                    [&] { return host_->ReduceScatter(group, array, dtype, owners); });
    }
    MOTLEY_ASSIGN_OR_RETURN(const int member, MemberOf("reduce-scatter", group, owners));
    return ByNccl("reduce-scatter", Lane::kCollective,
                  [&] { return collectives_.ReduceScatter(*comm, member, static_cast<char*>(array), dtype, owners, patience_); });
  }

  absl::Status AllReduce(int group, void* array, DType dtype, int64_t elements) override {
    NcclComm* const comm = mesh_->OfGroup(group);
    if (comm == nullptr) {
      return ByHost(collective_pacer_, host_->collective_pacer(),
                    [&] { return host_->AllReduce(group, array, dtype, elements); });
    }
    return ByNccl("all-reduce", Lane::kCollective, [&] {
      const auto reduce = [&](ncclComm_t handle) {
        return options_.nccl.api->ncclAllReduce(array, array, static_cast<size_t>(elements), NcclTypeOf(dtype), ncclSum, handle,
                                                StreamOf(Lane::kCollective));
      };
      return elements == 0 ? absl::OkStatus() : comm->Enqueue(reduce, patience_);
    });
  }

  absl::Status Send(int peer, const void* data, int64_t bytes) override {
    NcclComm* const comm = mesh_->To(peer);
    if (comm == nullptr) return ByHost(send_pacer_, host_->send_pacer(), [&] { return host_->Send(peer, data, bytes); });
    return ByNccl(absl::StrCat("sending to ", options_.devices[peer].value()), Lane::kSend, [&] {
      const auto send = [&](ncclComm_t handle) {
        return options_.nccl.api->ncclSend(data, static_cast<size_t>(bytes), ncclUint8, NcclMesh::kReceiver, handle,
                                           StreamOf(Lane::kSend));
      };
      return bytes == 0 ? absl::OkStatus() : comm->Enqueue(send, patience_);
    });
  }

  absl::Status Receive(int peer, void* data, int64_t bytes) override {
    NcclComm* const comm = mesh_->From(peer);
    if (comm == nullptr) return ByHost(receive_pacer_, host_->receive_pacer(), [&] { return host_->Receive(peer, data, bytes); });
    return ByNccl(absl::StrCat("receiving from ", options_.devices[peer].value()), Lane::kReceive, [&] {
      const auto receive = [&](ncclComm_t handle) {
        return options_.nccl.api->ncclRecv(data, static_cast<size_t>(bytes), ncclUint8, NcclMesh::kSender, handle,
                                           StreamOf(Lane::kReceive));
      };
      return bytes == 0 ? absl::OkStatus() : comm->Enqueue(receive, patience_);
    });
  }

  absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) override {
    return Exchanged(host_->GatherScalars(mine));
  }
  absl::StatusOr<std::vector<std::string>> GatherStrings(const std::string& mine) override {
    return Exchanged(host_->GatherStrings(mine));
  }

  Transport TransportOf(int group) const override {
    return mesh_->OfGroup(group) != nullptr ? Transport::kNccl : host_->TransportOf(group);
  }
  Transport TransportTo(int peer) const override {
    return mesh_->To(peer) != nullptr ? Transport::kNccl : host_->TransportTo(peer);
  }
  Transport TransportFrom(int peer) const override {
    return mesh_->From(peer) != nullptr ? Transport::kNccl : host_->TransportFrom(peer);
  }

  std::optional<NcclLinks> NcclLinksOf(int group) const override { return mesh_->LinksOf(mesh_->OfGroup(group)); }
  std::optional<NcclLinks> NcclLinksTo(int peer) const override { return mesh_->LinksOf(mesh_->To(peer)); }

  bool Blocks(Lane lane) const override {
    const auto by_tcp = [](const std::set<int>& peers, auto transport) {
      return std::any_of(peers.begin(), peers.end(), [&](int peer) { return transport(peer) == Transport::kTcp; });
    };
    switch (lane) {
      case Lane::kCollective:
        for (int g = 0; g < static_cast<int>(options_.groups.size()); ++g) {
          if (TransportOf(g) == Transport::kTcp) return true;
        }
        return false;
      case Lane::kSend:
        return by_tcp(options_.sends_to, [this](int peer) { return TransportTo(peer); });
      case Lane::kReceive:
        return by_tcp(options_.receives_from, [this](int peer) { return TransportFrom(peer); });
      case Lane::kCompute:
      case Lane::kCopy:  // touches no network
        return false;
    }
    return true;
  }

  absl::Status Reserve(Lane lane, int64_t bytes) override { return host_->Reserve(lane, bytes); }
  absl::Status ReserveCollective(int group, DType dtype, const Owners& owners) override {
    return mesh_->OfGroup(group) == nullptr ? absl::OkStatus() : collectives_.Reserve(dtype, owners);
  }

  // A connection that closed names the rank that was lost; NCCL only says that one was.
  absl::Status Health() override {
    MOTLEY_RETURN_IF_ERROR(first_cause_.NotAborted("health"));
    MOTLEY_RETURN_IF_ERROR(host_->Health());
    return mesh_->Health();
  }

  void Abort(const std::string& reason) override { AbortIfFirst(reason); }

  double lateness_seconds() const override { return host_->lateness_seconds(); }

 private:
  void* StreamOf(Lane lane) const { return options_.streams[static_cast<size_t>(lane)]; }

  void Progress() {
    if (progress_) progress_();
  }

  absl::StatusOr<int> MemberOf(const char* what, int group, const Owners& owners) const {
    const std::vector<int>& members = options_.groups[group];
    if (owners.size() != members.size()) {
      return absl::InternalError(
          absl::StrCat(what, ": ", owners.size(), " owners for the ", members.size(), " members of group ", group));
    }
    return static_cast<int>(std::find(members.begin(), members.end(), rank()) - members.begin());
  }

  template <typename Call>
  absl::Status ByNccl(const std::string& what, Lane lane, Call call) {
    MOTLEY_RETURN_IF_ERROR(first_cause_.NotAborted(what));
    absl::Status status = call();
    if (status.ok() && Blocks(lane)) status = AwaitStream(what, StreamOf(lane));
    if (!status.ok()) return Failed(what, status);
    Progress();
    return absl::OkStatus();
  }

  absl::Status AwaitStream(const std::string& what, void* stream) {
    return PollUntil(what, patience_, [&] { return options_.memory->IsDone(stream); });
  }

  template <typename Call>
  absl::Status ByHost(TransferPacer& own, TransferPacer& hosts, Call call) {
    return HostEnded(Forwarded(own, hosts, call));
  }

  template <typename T>
  absl::StatusOr<T> Exchanged(absl::StatusOr<T> result) {
    if (!result.ok()) return HostEnded(result.status());
    return result;
  }

  // The host communicator ended itself when it failed, and says the first cause. Wrong arguments end nothing.
  absl::Status HostEnded(const absl::Status& status) {
    if (absl::IsUnavailable(status)) AbortIfFirst(std::string(status.message()));
    return status;
  }

  // The first cause ends everything.
  absl::Status Failed(const std::string& what, const absl::Status& error) {
    if (!AbortIfFirst(absl::StrCat("an earlier ", what, " failed: ", error.message()))) return first_cause_.NotAborted(what);
    return WithFault(absl::Status(error.code(), absl::StrCat(what, ": ", error.message())), FaultOf(error));
  }

  // The connections first: peers see them close while NCCL still ends its kernels.
  bool AbortIfFirst(const std::string& reason) {
    if (!first_cause_.Set(reason)) return false;
    host_->Abort(reason);
    mesh_->Abort();
    return true;
  }

  const CommunicatorOptions options_;
  const NcclPatience patience_;
  const std::unique_ptr<Communicator> host_;
  const std::unique_ptr<NcclMesh> mesh_;
  NcclCollectives collectives_;  // its room goes before the communicators that use it
  FirstCause first_cause_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectNccl(const CommunicatorOptions& options,
                                                          const std::vector<Introduction>& introductions,
                                                          std::unique_ptr<Communicator> host, RankHost& rank_host) {
  absl::StatusOr<std::unique_ptr<NcclMesh>> mesh = NcclMesh::Connect(
      options, introductions, [&host] { return host->Health(); }, rank_host);
  if (!mesh.ok()) {
    // Without its word of farewell: peers that wait for this rank see that it is lost.
    host->Abort(std::string(mesh.status().message()));
    return mesh.status();
  }
  return std::make_unique<NcclCommunicator>(options, std::move(host), *std::move(mesh));
}

}  // namespace motley::engine
