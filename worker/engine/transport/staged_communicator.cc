#include "worker/engine/transport/staged_communicator.h"

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "worker/engine/transport/device_memory.h"

namespace motley::engine {
namespace {

// Pinned bytes that grow as asked.
class HostRoom {
 public:
  explicit HostRoom(DeviceMemory& memory) : memory_(memory) {}
  ~HostRoom() {
    if (room_ != nullptr) memory_.FreeHost(room_);
  }
  HostRoom(HostRoom&& other) noexcept
      : memory_(other.memory_), room_(std::exchange(other.room_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

  absl::StatusOr<char*> AtLeast(int64_t bytes) {
    if (bytes <= bytes_) return static_cast<char*>(room_);
    if (room_ != nullptr) memory_.FreeHost(std::exchange(room_, nullptr));
    bytes_ = 0;
    MOTLEY_ASSIGN_OR_RETURN(room_, memory_.AllocateHost(bytes));
    bytes_ = bytes;
    return static_cast<char*>(room_);
  }

 private:
  DeviceMemory& memory_;
  void* room_ = nullptr;
  int64_t bytes_ = 0;
};

// Neighbours as one: a copy has a price of its own.
std::vector<ElementRange> Joined(std::vector<ElementRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ElementRange& a, const ElementRange& b) { return a.begin < b.begin; });
  std::vector<ElementRange> joined;
  for (const ElementRange& range : ranges) {
    if (!joined.empty() && joined.back().end == range.begin) {
      joined.back().end = range.end;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

class StagedCommunicator : public Communicator {
 public:
  StagedCommunicator(const CommunicatorOptions& options, std::unique_ptr<Communicator> host)
      : memory_(*options.memory),
        streams_(options.streams),
        groups_(options.groups),
        paced_(options.device.link_bytes_per_second > 0),
        host_(std::move(host)) {
    for (size_t lane = 0; lane < kNumLanes; ++lane) rooms_.emplace_back(memory_);
    host_->set_progress([this] {
      if (progress_) progress_();
    });
  }

  int rank() const override { return host_->rank(); }
  int world() const override { return host_->world(); }

  absl::Status AllGather(int group, void* array, DType dtype, const Owners& owners) override {
    MOTLEY_ASSIGN_OR_RETURN(const Split split, SplitOf(group, owners));
    if (owners.size() == 1) return absl::OkStatus();  // all is here
    const int64_t element_bytes = SizeOfBytes(dtype);
    MOTLEY_ASSIGN_OR_RETURN(char* const room, RoomOf(Lane::kCollective, split.end * element_bytes));
    MOTLEY_RETURN_IF_ERROR(Copy(Lane::kCollective, room, array, split.mine, element_bytes));
    MOTLEY_RETURN_IF_ERROR(
        Forwarded(collective_pacer_, host_->collective_pacer(), [&] { return host_->AllGather(group, room, dtype, owners); }));
    return CopyIn(Lane::kCollective, collective_pacer_, array, room, split.others, element_bytes);
  }

  absl::Status ReduceScatter(int group, void* array, DType dtype, const Owners& owners) override {
    MOTLEY_ASSIGN_OR_RETURN(const Split split, SplitOf(group, owners));
    if (owners.size() == 1) return absl::OkStatus();  // all is here
    const int64_t element_bytes = SizeOfBytes(dtype);
    MOTLEY_ASSIGN_OR_RETURN(char* const room, RoomOf(Lane::kCollective, split.end * element_bytes));
    std::vector<ElementRange> all = split.mine;
    all.insert(all.end(), split.others.begin(), split.others.end());
    MOTLEY_RETURN_IF_ERROR(Copy(Lane::kCollective, room, array, Joined(all), element_bytes));
    MOTLEY_RETURN_IF_ERROR(Forwarded(collective_pacer_, host_->collective_pacer(),
                                     [&] { return host_->ReduceScatter(group, room, dtype, owners); }));
    return CopyIn(Lane::kCollective, collective_pacer_, array, room, split.mine, element_bytes);
  }

  absl::Status AllReduce(int group, void* array, DType dtype, int64_t elements) override {
    const int members = group >= 0 && group < static_cast<int>(groups_.size()) ? static_cast<int>(groups_[group].size()) : 0;
    if (members == 1) return absl::OkStatus();  // all is here
    const std::vector<ElementRange> all = {{0, elements}};
    const int64_t element_bytes = SizeOfBytes(dtype);
    MOTLEY_ASSIGN_OR_RETURN(char* const room, RoomOf(Lane::kCollective, elements * element_bytes));
    MOTLEY_RETURN_IF_ERROR(Copy(Lane::kCollective, room, array, all, element_bytes));
    MOTLEY_RETURN_IF_ERROR(
        Forwarded(collective_pacer_, host_->collective_pacer(), [&] { return host_->AllReduce(group, room, dtype, elements); }));
    return CopyIn(Lane::kCollective, collective_pacer_, array, room, all, element_bytes);
  }

  absl::Status Send(int peer, const void* data, int64_t bytes) override {
    MOTLEY_ASSIGN_OR_RETURN(char* const room, RoomOf(Lane::kSend, bytes));
    MOTLEY_RETURN_IF_ERROR(Copy(Lane::kSend, room, data, {{0, bytes}}, 1));
    return Forwarded(send_pacer_, host_->send_pacer(), [&] { return host_->Send(peer, room, bytes); });
  }

  absl::Status Receive(int peer, void* data, int64_t bytes) override {
    MOTLEY_ASSIGN_OR_RETURN(char* const room, RoomOf(Lane::kReceive, bytes));
    MOTLEY_RETURN_IF_ERROR(Forwarded(receive_pacer_, host_->receive_pacer(), [&] { return host_->Receive(peer, room, bytes); }));
    return CopyIn(Lane::kReceive, receive_pacer_, data, room, {{0, bytes}}, 1);
  }

  absl::StatusOr<std::vector<std::vector<double>>> GatherScalars(const std::vector<double>& mine) override {
    return host_->GatherScalars(mine);
  }
  absl::StatusOr<std::vector<std::string>> GatherStrings(const std::string& mine) override { return host_->GatherStrings(mine); }
  absl::Status Reserve(Lane lane, int64_t bytes) override { return RoomOf(lane, bytes).status(); }
  Transport TransportOf(int group) const override { return host_->TransportOf(group); }
  Transport TransportTo(int peer) const override { return host_->TransportTo(peer); }
  Transport TransportFrom(int peer) const override { return host_->TransportFrom(peer); }
  absl::Status Health() override { return host_->Health(); }
  void Abort(const std::string& reason) override { host_->Abort(reason); }
  double lateness_seconds() const override { return host_->lateness_seconds(); }

 private:
  // What this rank owns, what the others own, and where the last of it ends.
  struct Split {
    std::vector<ElementRange> mine, others;
    int64_t end = 0;
  };

  absl::StatusOr<Split> SplitOf(int group, const Owners& owners) const {
    Split split;
    const std::vector<int>* const members = group >= 0 && group < static_cast<int>(groups_.size()) ? &groups_[group] : nullptr;
    if (members == nullptr || members->size() != owners.size()) {
      return absl::InternalError(absl::StrCat("rank ", rank(), ": ", owners.size(), " owners for group ", group));
    }
    for (size_t i = 0; i < owners.size(); ++i) {
      std::vector<ElementRange>& to = (*members)[i] == rank() ? split.mine : split.others;
      to.insert(to.end(), owners[i].begin(), owners[i].end());
      for (const ElementRange& range : owners[i]) split.end = std::max(split.end, range.end);
    }
    split.mine = Joined(std::move(split.mine));
    split.others = Joined(std::move(split.others));
    return split;
  }

  absl::StatusOr<char*> RoomOf(Lane lane, int64_t bytes) { return rooms_[static_cast<size_t>(lane)].AtLeast(bytes); }

  // What came, to the device. It is there when the copy ends; by the schedule of declared links, when they say so.
  absl::Status CopyIn(Lane lane, TransferPacer& pacer, void* to, const void* from, const std::vector<ElementRange>& ranges,
                      int64_t element_bytes) {
    MOTLEY_RETURN_IF_ERROR(Copy(lane, to, from, ranges, element_bytes));
    if (!paced_) pacer.TookUntil(clock_.Now());
    return absl::OkStatus();
  }

  // The ranges of one array to the same places of the other. Returns when they are there.
  absl::Status Copy(Lane lane, void* to, const void* from, const std::vector<ElementRange>& ranges, int64_t element_bytes) {
    void* const stream = streams_[static_cast<size_t>(lane)];
    for (const ElementRange& range : ranges) {
      const int64_t at = range.begin * element_bytes;
      MOTLEY_RETURN_IF_ERROR(memory_.CopyAsync(static_cast<char*>(to) + at, static_cast<const char*>(from) + at,
                                               range.size() * element_bytes, stream));
    }
    for (;;) {
      MOTLEY_ASSIGN_OR_RETURN(const bool done, memory_.IsDone(stream));
      if (done) return absl::OkStatus();
      std::this_thread::yield();
    }
  }

  DeviceMemory& memory_;
  const std::array<void*, kNumLanes> streams_;
  const std::vector<std::vector<int>> groups_;
  const bool paced_;             // the links are declared
  std::vector<HostRoom> rooms_;  // by Lane
  const std::unique_ptr<Communicator> host_;
};

}  // namespace

std::unique_ptr<Communicator> StageOn(const CommunicatorOptions& options, std::unique_ptr<Communicator> host) {
  return std::make_unique<StagedCommunicator>(options, std::move(host));
}

}  // namespace motley::engine
