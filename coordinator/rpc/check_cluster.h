// CheckCluster: what is well with the cluster and what is not, as far as it can be seen from here.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class CheckClusterSource : public StreamSource<v1::CheckClusterUpdate> {
 public:
  explicit CheckClusterSource(const v1::CheckClusterRequest& request) : request_(request) {}
  // INVALID_ARGUMENT: a path that is not absolute, or too long. DEADLINE_EXCEEDED: the client did not read on for too long.
  absl::StatusOr<Pull> Next(Core& core, v1::CheckClusterUpdate* out) override;
  Topic topic() const override { return {NewsKind::kExamination, JobId()}; }

 private:
  absl::Status Begin(Core& core);
  // What it does; takes the examination's result when that is there.
  absl::StatusOr<std::string> Advance(Core& core);

  const v1::CheckClusterRequest request_;
  std::shared_ptr<const int> ticket_;        // of the examination; it ends with this
  std::shared_ptr<const int> disks_;         // of the look at the nodes' own disks; null: the request names a folder instead
  std::optional<v1::ClusterCheck> checked_;  // the examination is over, and the disks are waited for
  std::string said_;
  bool done_ = false;
};

}  // namespace motley::coordinator
