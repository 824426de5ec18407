// Clusters for the planner's tests: profiles by formula, so that every expected number can be derived by hand.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "common/model/model.h"
#include "common/model/operators.h"
#include "planner/live/live_inputs.h"

namespace motley::planner {

inline ModelShape SmallModel(bool tied = true, int64_t layers = 4) {
  ModelShape model;
  model.family = ModelFamily::kGpt2;
  model.vocab_size = 256;
  model.hidden_size = 64;
  model.num_layers = layers;
  model.num_heads = model.num_kv_heads = 4;
  model.head_dim = 16;
  model.intermediate_size = 256;
  model.max_positions = 128;
  model.tie_embeddings = tied;
  return model;
}

struct DeviceSetup {
  std::string id, model;
  double flops_per_second = 1e9;
  int64_t memory_bytes = int64_t{1} << 30;
};

// launch + FLOPs / rate for every instruction; collectives of latency + bytes / link, `skew_cost` times more at one owner.
inline PlannerInput MakeInput(const ModelShape& model, const std::vector<DeviceSetup>& devices, int64_t batch, double link = 1e9,
                              double skew_cost = 1.0) {
  PlannerInput input;
  input.cluster_name = "live";
  input.model = model;
  input.epoch = Epoch(3);
  input.config.training.global_batch_size = batch;
  input.config.training.seq_len = 32;
  input.config.data.validation_samples = 8;
  constexpr double kLaunch = 1e-4;
  for (const DeviceSetup& setup : devices) {
    DeviceDescription device;
    device.id = DeviceId(setup.id);
    device.model = setup.model;
    device.kind = motley::DeviceKind::kEmulated;
    device.memory_bytes = setup.memory_bytes;
    device.flops_per_second = setup.flops_per_second;
    input.devices.push_back(device);
    ComputeProfile profile;
    profile.device = device.id;
    for (const auto& [kind, unit] : {std::pair{UnitKind::kEmbedding, &profile.embedding},
                                     std::pair{UnitKind::kLayer, &profile.layer}, std::pair{UnitKind::kHead, &profile.head}}) {
      for (const int64_t m : {1, 2, 4, 8}) {
        ComputePoint point;
        point.microbatch = m;
        point.forward_seconds = kLaunch + ForwardFlops(model, kind, m, 32) / setup.flops_per_second;
        point.backward_seconds = kLaunch + BackwardFlops(model, kind, m, 32) / setup.flops_per_second;
        point.saved_bytes = SavedBytes(model, kind, m, 32, DType::kFloat32);
        point.workspace_bytes = BoundaryBytes(model, m, 32, DType::kFloat32) * 4;
        unit->points.push_back(point);
      }
    }
    profile.optimizer_seconds_per_element = kOptimizerFlopsPerElement / setup.flops_per_second;
    profile.context_bytes = 1 << 16;
    input.compute.push_back(profile);
    input.collectives.devices.push_back(device.id);
  }
  const double even = 1.0 / static_cast<double>(devices.size());
  for (const int64_t bytes : {int64_t{1} << 10, int64_t{1} << 20}) {
    for (const double skew : {even, (1 + even) / 2, 1.0}) {
      const double seconds =
          (1e-4 + static_cast<double>(bytes) / link) * (1 + (skew - even) / (1 - even + 1e-9) * (skew_cost - 1));
      input.collectives.points.push_back({bytes, skew, seconds, seconds});
    }
  }
  input.collectives.barrier_seconds = 1e-4;
  return input;
}

inline std::vector<DeviceSetup> MixedDevices() {
  return {{"n1/gpu0", "A6000", 4e9, int64_t{64} << 20},
          {"n1/gpu1", "L4", 3e9, int64_t{24} << 20},
          {"n2/gpu0", "P40", 1.2e9, int64_t{24} << 20},
          {"n2/gpu1", "P40", 1.2e9, int64_t{24} << 20},
          {"n3/gpu0", "P100", 1e9, int64_t{12} << 20}};
}

}  // namespace motley::planner
