// The NCCL communicators of one rank: one for each of its groups and one for each ordered pair of its hand-overs, where the
// members can use NCCL together. Each is used by one lane, and lanes need no order among each other: the kernels of all of them
// fit on the card at once. Private to the engine. docs/inside/nccl.md
//
// Thread-safe once made.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/session/transport_use.h"
#include "worker/engine/base/rank_host.h"
#include "worker/engine/nccl/nccl_comm.h"
#include "worker/engine/transport/connect_communicator.h"
#include "worker/engine/transport/introduction.h"

namespace motley::engine {

// How long a member of one communicator waits for the others. All are made one after another, and a member that is late may wait
// for a chain of them: the limit grows with the groups and with a pipeline's hand-overs there and back.
absl::Duration NcclConnectLimit(const CommunicatorOptions& options);

class NcclMesh {
 public:
  // The orderly end: all are finalized before the first is given back, in the order in which all ranks made theirs. Else two
  // ranks of one node would each wait for the other to end another one.
  ~NcclMesh();
  // Decides for each group and pair, says once what goes by TCP and why, then makes the communicators in one order on all ranks.
  // `check`: asked while peers are awaited. Errors as ConnectCommunicator's.
  static absl::StatusOr<std::unique_ptr<NcclMesh>> Connect(const CommunicatorOptions& options,
                                                           const std::vector<Introduction>& introductions,
                                                           const std::function<absl::Status()>& check, RankHost& host);

  static constexpr int kSender = 0, kReceiver = 1;  // in the communicator of a pair

  // Null: it goes by TCP, or there is no other member.
  NcclComm* OfGroup(int group) const { return Find(groups_, group); }
  NcclComm* To(int peer) const { return Find(to_, peer); }
  NcclComm* From(int peer) const { return Find(from_, peer); }

  // How it moves its bytes, as NCCL logged it; none: nobody knows, or `comm` is null.
  std::optional<NcclLinks> LinksOf(const NcclComm* comm) const {
    const auto found = links_.find(comm);
    return found == links_.end() ? std::nullopt : std::optional(found->second);
  }

  absl::Status Health();
  // All at once: NCCL's abort of one waits for the card, on which another one's kernels may still wait for the lost peer.
  void Abort();

 private:
  using Comms = std::map<int, NcclComm*>;
  explicit NcclMesh(const NcclApi& api) : api_(api) {}

  static NcclComm* Find(const Comms& comms, int key) {
    const auto found = comms.find(key);
    return found == comms.end() ? nullptr : found->second;
  }

  const NcclApi api_;
  absl::Mutex turn_;  // of all of them
  // Constant once made:
  std::vector<std::unique_ptr<NcclComm>> all_;  // in the order of their making
  Comms groups_, to_, from_;
  std::map<const NcclComm*, NcclLinks> links_;
};

}  // namespace motley::engine
