// ProbeMemory: how many samples of a model each device of a node trains at once, found by trial.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class ProbeMemorySource : public StreamSource<v1::ProbeMemoryUpdate> {
 public:
  explicit ProbeMemorySource(const v1::ProbeMemoryRequest& request) : request_(request) {}
  // INVALID_ARGUMENT: no such model, sequence, type or number of layers; errors of BeginMemoryProbe, and what ended the probe.
  // DEADLINE_EXCEEDED: the client did not read on for too long.
  absl::StatusOr<Pull> Next(Core& core, v1::ProbeMemoryUpdate* out) override;
  Topic topic() const override { return {NewsKind::kExamination, JobId()}; }

 private:
  const v1::ProbeMemoryRequest request_;
  std::shared_ptr<const int> ticket_;  // of the probe; it ends with this
  std::string said_;
  bool done_ = false;
};

}  // namespace motley::coordinator
