// Which NVIDIA cards the kernel's driver knows on this machine, read from its files: no library, no program, no GPU time. This
// version cannot use them; the worker says so instead of leaving them unmentioned.
#pragma once

#include <string>
#include <vector>

namespace motley::worker {

struct NvidiaCard {
  std::string bus;    // "0000:3b:00.0"
  std::string model;  // as the driver names it: "NVIDIA A100-SXM4-40GB"
};

struct NvidiaCards {
  std::string driver;             // "535.129.03"; empty: not known
  std::vector<NvidiaCard> cards;  // by bus address, as CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them
};

// The driver's folder: $MOTLEY_NVIDIA_PROC, or /proc/driver/nvidia.
std::string NvidiaFolder();
// Reads `folder`/version and `folder`/gpus/*/information. None where there is no driver.
NvidiaCards FindNvidiaCards(const std::string& folder);
// "2 x NVIDIA A100-SXM4-40GB, Tesla T4, driver 535.129.03"
std::string Describe(const NvidiaCards& found);

}  // namespace motley::worker
