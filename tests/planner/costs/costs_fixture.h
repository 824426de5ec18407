// A small cluster and a workload for tests of costs.
#pragma once

#include <string>
#include <vector>

#include "common/device/device_table.h"
#include "planner/cluster/cluster.h"
#include "planner/costs/workload.h"

namespace motley::planner {

inline CardKind KindNamed(const std::string& name) {
  const GpuSpec gpu = FindGpu(name).value();
  CardKind kind = {std::string(gpu.name),      gpu.fp32_flops, gpu.tf32_flops, gpu.fp16_flops, gpu.bf16_flops, gpu.memory_bytes,
                   gpu.memory_bytes_per_second};
  kind.parts = RowOf(gpu.family).parts;
  return kind;
}

// One node, one device of each kind.
inline Cluster ClusterOf(const std::vector<std::string>& cards) {
  Cluster cluster;
  cluster.name = "test";
  cluster.regions = {"here"};
  ClusterNode node;
  node.name = NodeName("n1");
  node.device_link_bytes_per_second = 16e9;
  node.nic_bytes_per_second = 6.25e9;
  for (size_t i = 0; i < cards.size(); ++i) {
    cluster.kinds.push_back(KindNamed(cards[i]));
    node.devices.push_back(static_cast<int>(i));
    cluster.devices.push_back({DeviceId("n1/gpu" + std::to_string(i)), static_cast<int>(i), 0});
  }
  cluster.nodes.push_back(node);
  return cluster;
}

inline Workload WorkloadOf(const std::string& model, DType dtype, int64_t seq_len = 512, int64_t batch = 64) {
  Workload workload = LoadModel(model).value();
  workload.dtype = dtype;
  workload.seq_len = seq_len;
  workload.global_batch = batch;
  return workload;
}

}  // namespace motley::planner
