#include "worker/engine/rank_lanes.h"

#include <functional>
#include <string>
#include <utility>

#include "worker/engine/base/memory.h"
#include "worker/engine/base/threads.h"
#include "worker/engine/lanes/host_lane.h"
#include "worker/engine/lanes/queued_lane.h"

namespace motley::engine {
namespace {

// A thread in a call notices by itself that a peer is gone; a stream does not.
std::function<absl::Status()> HealthOf(DeviceBackend& backend, Communicator& communicator) {
  if (backend.StreamOf(Lane::kCompute) == nullptr) return nullptr;
  return [&communicator] { return communicator.Health(); };
}

}  // namespace

RankLanes::RankLanes(const DeviceDescription& device, DeviceBackend& backend, Communicator& communicator, HostLink& host_link,
                     ComputePacer& pacer)
    : shared_(
          clock_, [&communicator](const absl::Status& error) { communicator.Abort(std::string(error.message())); },
          HealthOf(backend, communicator)) {
  const std::pair<Lane, LanePacer*> lanes[] = {{Lane::kCollective, &communicator.collective_pacer()},
                                               {Lane::kSend, &communicator.send_pacer()},
                                               {Lane::kReceive, &communicator.receive_pacer()},
                                               {Lane::kCopy, &host_link.pacer()},
                                               {Lane::kCompute, &pacer}};  // last: the newest number becomes the process's
  for (const auto& [lane, lanes_pacer] : lanes) {
    DeviceStream* const stream = backend.StreamOf(lane);
    std::unique_ptr<DeviceLane>& made = lanes_[static_cast<size_t>(lane)];
    // Transfers and copies compute nothing: a team of their own would take the compute lane's cores.
    const int threads = lane == Lane::kCompute ? device.threads : 1;
    const auto on_start = [threads, account = backend.host_account()] {
      SetThreads(threads);
      CountIn(account);
    };
    const bool is_communicators = lane != Lane::kCompute && lane != Lane::kCopy;
    const bool blocks = is_communicators && communicator.Blocks(lane);
    if (stream == nullptr || blocks) {
      made = std::make_unique<HostLane>(shared_, *lanes_pacer, on_start, stream);
    } else {
      made = std::make_unique<QueuedLane>(shared_, *stream, on_start);
    }
    all_[static_cast<size_t>(lane)] = made.get();
  }
}

}  // namespace motley::engine
