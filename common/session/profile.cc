#include "common/session/profile.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/dtype.h"
#include "common/base/version.h"
#include "common/data/sampling.h"
#include "common/device/device.h"
#include "common/model/model.h"
#include "common/model/parameters.h"

namespace motley {
namespace {

// Raised when what is measured, or how, changes within a version: stored profiles are then measured anew.
constexpr int kProfileMethod = 5;

// The same for collectives and links alone.
constexpr int kCollectiveMethod = 2;

// Every field, in full precision: a digest must change with any of them and with nothing else. Of a card: which one it is, what
// computes on it, and the power that it may take; not how it is today. The way to the host's memory and what is offered there are
// no part of it: nothing that profiles measure goes that way.
std::string Describe(const DeviceDescription& d) {
  return absl::StrFormat("device{%s|%s|%d|%d|%.17g|%d|%.17g|%.17g|%d|%d|%s}card{%s|%s|%d|%d}", d.id.value(), d.model,
                         static_cast<int>(d.kind), d.memory_bytes, d.flops_per_second, absl::ToInt64Nanoseconds(d.launch),
                         d.link_bytes_per_second, d.node_link_bytes_per_second, absl::ToInt64Nanoseconds(d.link_latency),
                         d.threads, d.libtorch, d.card.uuid, d.card.driver, d.card.driver_cuda, d.card.power_limit_watts) +
         (d.card.kernels.empty() ? "" : absl::StrFormat("kernels{%s}", d.card.kernels));
}

// What moves a card's bytes, and on what way.
std::string DescribeLinks(const CardDescription& card) {
  return absl::StrFormat("links{%d|%d|%d|%s|%s}", card.nccl_version, card.pcie_generation, card.pcie_lanes,
                         absl::StrJoin(card.nvlink_peers, ","), absl::StrJoin(card.p2p_peers, ","));
}

std::string Describe(const ModelShape& s) {
  return absl::StrFormat("model{%d|%d|%d|%d|%d|%d|%d|%d|%d|%.17g|%.17g|%d}", static_cast<int>(s.family), s.vocab_size,
                         s.hidden_size, s.num_layers, s.num_heads, s.num_kv_heads, s.head_dim, s.intermediate_size,
                         s.max_positions, s.norm_eps, s.rope_theta, s.tie_embeddings) +
         (s.rope_scaling.factor == 1 ? "" : absl::StrFormat("scaled{%.17g}", s.rope_scaling.factor));
}

// 128 bits: two hashes of the same text with different beginnings.
std::string Digest(std::string_view kind, const std::string& text) {
  const std::string full = absl::StrFormat("%s|%s|%d|%s", kind, kVersion, kProfileMethod, text);
  return absl::StrFormat("%016x%016x", HashText(full), HashText("2|" + full));
}

}  // namespace

int64_t LargestThatRan(const std::vector<MemoryTrial>& trials) {
  int64_t largest = 0;
  for (const MemoryTrial& trial : trials) largest = std::max(largest, trial.seconds > 0 ? trial.samples : 0);
  return largest;
}

std::string ComputeProfileDigest(const DeviceDescription& device, const ModelShape& shape, int64_t seq_len, DType dtype) {
  return Digest("compute", absl::StrFormat("%s%sseq{%d}%s", Describe(device), Describe(shape), seq_len, DTypeName(dtype)));
}

std::string CollectiveProfileDigest(const std::vector<DeviceDescription>& devices, const ModelShape& shape, DType dtype) {
  std::string text;
  for (const DeviceDescription& device : devices) text += Describe(device) + DescribeLinks(device.card);
  int64_t largest_unit = 0;
  for (const UnitSpec& unit : ParameterLayout(shape)) largest_unit = std::max(largest_unit, unit.num_elements);
  return Digest("collective", absl::StrFormat("method{%d}%sunit{%d}%s", kCollectiveMethod, text, largest_unit, DTypeName(dtype)));
}

}  // namespace motley
