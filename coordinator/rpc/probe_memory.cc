#include "coordinator/rpc/probe_memory.h"

#include "absl/strings/str_cat.h"
#include "common/base/dtype.h"
#include "common/base/status_macros.h"
#include "common/wire/profile.h"
#include "coordinator/epoch/memory_probe.h"
#include "coordinator/rpc/job_size.h"

namespace motley::coordinator {
namespace {

// As a job would have it.
absl::StatusOr<JobConfig> ConfigOf(const v1::ProbeMemoryRequest& request) {
  JobConfig config;
  config.model.config = request.model_name();
  config.model.config_json = request.model_config_json();
  config.training.seq_len = request.seq_len();
  config.training.steps = 2;
  MOTLEY_RETURN_IF_ERROR(CheckJobSize(config));
  if (config.model.config_json.empty())
    return absl::InvalidArgumentError("model_config_json is missing: a HuggingFace config.json");
  if (!request.dtype().empty()) {
    MOTLEY_ASSIGN_OR_RETURN(const DType dtype, ParseDType(request.dtype()));
    const std::string name(DTypeName(dtype));
    (SizeOfBytes(dtype) < SizeOfBytes(DType::kFloat32) ? config.training.mixed_precision_param : config.training.dtype) = name;
  }
  MOTLEY_ASSIGN_OR_RETURN(const ModelShape model, ResolveModel(config));
  const auto outside = [](const char* field, int64_t least, int64_t most, const char* of, int64_t got) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must be ", least, " to ", most, " (", of, "), got ", got));
  };
  if (request.seq_len() < 1 || request.seq_len() > model.max_positions)
    return outside("seq_len", 1, model.max_positions, "the longest sequence of the model", request.seq_len());
  if (request.layers() < 0 || request.layers() > model.num_layers)
    return outside("layers", 1, model.num_layers, "as the model has", request.layers());
  return config;
}

v1::ProbeMemoryResult ViewOf(const Core& core, const MemoryProbe& probe) {
  v1::ProbeMemoryResult view;
  view.set_node(probe.node.value());
  view.set_model(ModelName(probe.config.model));
  view.set_layers(probe.tried.num_layers);
  view.set_seconds(absl::ToDoubleSeconds(core.clock.Now() - probe.begun));
  for (const ProbedDevice& probed : probe.devices) {
    v1::ProbedDevice* device = view.add_devices();
    device->set_device(probed.device.id.value());
    device->set_largest_samples(probed.search.largest());
    for (const MemoryTrial& trial : probed.profile.trials) *device->add_trials() = wire::ToProto(trial);
    device->set_memory_bytes(probed.device.memory_bytes);
    device->set_ledger_bytes(probed.ledger_bytes);
    device->set_usable_memory_bytes(probed.profile.usable_bytes);
    device->set_limited(probed.limited);
  }
  return view;
}

}  // namespace

absl::StatusOr<Pull> ProbeMemorySource::Next(Core& core, v1::ProbeMemoryUpdate* out) {
  if (done_) return Pull::kEnd;
  if (ticket_ == nullptr) {
    MOTLEY_ASSIGN_OR_RETURN(const JobConfig config, ConfigOf(request_));
    MOTLEY_ASSIGN_OR_RETURN(ticket_, BeginMemoryProbe(core, NodeName(request_.node()), config, request_.layers()));
  }
  const MemoryProbe* const probe = FindMemoryProbe(core, ticket_);
  if (probe == nullptr) return absl::DeadlineExceededError("the result of the probe was not taken in time; ask again");
  if (probe->end) {
    const absl::Status end = *probe->end;
    if (end.ok()) *out->mutable_result() = ViewOf(core, *probe);
    ticket_.reset();
    EndMemoryProbe(core);
    done_ = true;
    if (!end.ok()) return end;
    return Pull::kMessage;
  }
  const std::string doing = Doing(core.clock.Now(), *probe);
  if (doing == said_) return Pull::kWait;
  said_ = doing;
  out->set_doing(doing);
  return Pull::kMessage;
}

}  // namespace motley::coordinator
