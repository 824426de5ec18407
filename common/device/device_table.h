// Data-sheet numbers of real cards, for emulated devices and for planning clusters that are not at hand.
//
// Rates are dense (no structured sparsity) peaks per card; half-precision rates accumulate in fp32. 0 = the card has no such
// unit. `link` is the card's fastest own link, one direction: NVLink or Infinity Fabric where the board has it, else PCIe x16.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/device/card_parts.h"

namespace motley {

struct GpuSpec {
  std::string_view name;
  CardFamily family = CardFamily::kOther;  // what kernels reach of these rates
  double fp32_flops = 0;
  double tf32_flops = 0;
  double fp16_flops = 0;
  double bf16_flops = 0;
  int64_t memory_bytes = 0;
  double memory_bytes_per_second = 0;
  double link_bytes_per_second = 0;
  double pcie_bytes_per_second = 0;  // to the host, x16, one direction; a GH200's NVLink-C2C
  std::string_view source;

  // "fp32", "tf32", "fp16" or "bf16"; FAILED_PRECONDITION when the card has no such unit, INVALID_ARGUMENT for other names.
  absl::StatusOr<double> Flops(std::string_view precision) const;
};

std::span<const GpuSpec> GpuTable();

// By name, without regard to case, spaces, dashes or the maker's name before it, or as the maker's driver has it; "A100", "H100"
// and "V100" alone mean the 40 GB SXM, the SXM and the 16 GB SXM card, "MI250" one of its two dies. NOT_FOUND names the nearest
// card, if NearestGpuName has one, or lists the known ones.
absl::StatusOr<GpuSpec> FindGpu(std::string_view name);
// The row that is meant by a name which FindGpu does not find: misspelt, incomplete, or a card of the same family and memory.
// Empty: none is. Never another card, however alike the names are.
std::string_view NearestGpuName(std::string_view name);

}  // namespace motley
