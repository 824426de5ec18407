#include "tests/worker/engine/equivalence/counting_communicator.h"

#include "common/base/status_macros.h"
#include "worker/engine/device/host_backend.h"
#include "worker/engine/trainer.h"
#include "worker/engine/transport/connect_communicator.h"

namespace motley::engine {
namespace {

// Lanes call from threads of their own: one a counter.
class Counting : public Communicator {
 public:
  Counting(Communicator& inner, const std::vector<std::vector<int>>& groups) : inner_(inner), groups_(groups) {}

  int rank() const override { return inner_.rank(); }
  int world() const override { return inner_.world(); }
  absl::Status AllGather(int group, void* array, DType dtype, const Owners& owners) override {
    if (groups_[group].size() > 1) bytes_.gathered += ElementsOf(owners) * SizeOfBytes(dtype);
    return inner_.AllGather(group, array, dtype, owners);
  }
  absl::Status ReduceScatter(int group, void* array, DType dtype, const Owners& owners) override {
    if (groups_[group].size() > 1) bytes_.reduced += ElementsOf(owners) * SizeOfBytes(dtype);
    return inner_.ReduceScatter(group, array, dtype, owners);
  }
  absl::Status AllReduce(int group, void* array, DType dtype, int64_t elements) override {
    if (groups_[group].size() > 1) bytes_.reduced += elements * SizeOfBytes(dtype);
    return inner_.AllReduce(group, array, dtype, elements);
  }
  absl::Status Send(int peer, const void* data, int64_t bytes) override {
    bytes_.handed_over += bytes;
    return inner_.Send(peer, data, bytes);
  }
  absl::Status Receive(int peer, void* data, int64_t bytes) override { return inner_.Receive(peer, data, bytes); }
  absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) override {
    return inner_.GatherScalars(mine);
  }
  absl::StatusOr<std::vector<std::string>> GatherStrings(const std::string& mine) override { return inner_.GatherStrings(mine); }
  absl::Status Reserve(Lane lane, int64_t bytes) override { return inner_.Reserve(lane, bytes); }
  absl::Status ReserveCollective(int group, DType dtype, const Owners& owners) override {
    return inner_.ReserveCollective(group, dtype, owners);
  }
  Transport TransportOf(int group) const override { return inner_.TransportOf(group); }
  Transport TransportTo(int peer) const override { return inner_.TransportTo(peer); }
  Transport TransportFrom(int peer) const override { return inner_.TransportFrom(peer); }
  void Abort(const std::string& reason) override { inner_.Abort(reason); }

  const CountedBytes& bytes() const { return bytes_; }

 private:
  Communicator& inner_;
  const std::vector<std::vector<int>>& groups_;
  CountedBytes bytes_;
};

void AddPeers(const Program& program, CommunicatorOptions& options) {
  for (const Instruction& instruction : program.instructions) {
    if (const auto* op = std::get_if<SendActivation>(&instruction.op)) options.sends_to.insert(op->peer);
    if (const auto* op = std::get_if<SendGradient>(&instruction.op)) options.sends_to.insert(op->peer);
    if (const auto* op = std::get_if<ReceiveActivation>(&instruction.op)) options.receives_from.insert(op->peer);
    if (const auto* op = std::get_if<ReceiveGradient>(&instruction.op)) options.receives_from.insert(op->peer);
  }
}

}  // namespace

absl::StatusOr<CountedBytes> TrainCounting(const RankAssignment& assignment, RankHost& host) {
  CommunicatorOptions options;
  options.rank = assignment.rank;
  options.devices = assignment.devices;
  options.data_addresses = assignment.data_addresses;
  options.device = assignment.device;
  for (const std::vector<int32_t>& group : assignment.program.groups) options.groups.emplace_back(group.begin(), group.end());
  AddPeers(assignment.program, options);
  AddPeers(assignment.evaluation, options);
  MOTLEY_ASSIGN_OR_RETURN(const auto links, LinkClock::Map(-1));
  MOTLEY_ASSIGN_OR_RETURN(const auto inner, ConnectCommunicator(options, host, *links));
  Counting communicator(*inner, options.groups);
  const StopRequest stop;
  const EngineOptions engine_options;
  HostBackend backend;
  MOTLEY_RETURN_IF_ERROR(Trainer(assignment, engine_options, backend, host, communicator, *links, stop).Run().status());
  return communicator.bytes();
}

}  // namespace motley::engine
