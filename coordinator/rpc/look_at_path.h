// LookAtPath: whether nodes have a path, with what a sample says of it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class LookAtPathSource : public StreamSource<v1::LookAtPathUpdate> {
 public:
  explicit LookAtPathSource(const v1::LookAtPathRequest& request) : request_(request) {}
  // INVALID_ARGUMENT: a path that is not absolute or too long, or a sample of too many blocks.
  absl::StatusOr<Pull> Next(Core& core, v1::LookAtPathUpdate* out) override;
  Topic topic() const override { return {NewsKind::kExamination, JobId()}; }

 private:
  const v1::LookAtPathRequest request_;
  std::shared_ptr<const int> ticket_;  // the look ends with this
  bool done_ = false;
};

}  // namespace motley::coordinator
