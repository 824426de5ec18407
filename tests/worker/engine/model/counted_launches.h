// Kernels of our own on a device without memory: launches are counted, and nothing runs.
#pragma once

#include <atomic>
#include <memory>

#include "tests/worker/engine/kernels/open_fake_kernels.h"
#include "worker/engine/kernels/kernel_launcher.h"

namespace motley::engine {

// One at a time.
class CountedLaunches {
 public:
  CountedLaunches() { launches_ = 0; }
  const KernelLauncher* kernels() const { return kernels_.get(); }
  int count() const { return launches_; }

 private:
  static DriverApi Driver() {
    DriverApi api;
    api.cuGetErrorName = [](CUresult, const char**) { return CUDA_SUCCESS; };
    api.cuDeviceGet = [](CUdevice* device, int) {
      *device = 0;
      return CUDA_SUCCESS;
    };
    api.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
      *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
      return CUDA_SUCCESS;
    };
    api.cuDevicePrimaryCtxRetain = [](CUcontext*, CUdevice) { return CUDA_SUCCESS; };
    api.cuCtxGetCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
    api.cuModuleLoadData = [](CUmodule*, const void*) { return CUDA_SUCCESS; };
    api.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) { return CUDA_SUCCESS; };
    api.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                            void**) {
      ++launches_;
      return CUDA_SUCCESS;
    };
    return api;
  }

  static inline std::atomic<int> launches_ = 0;
  const std::unique_ptr<KernelLauncher> kernels_ =
      KernelLauncher::Load(Driver(), 13000, {.ordinal = 0, .stream = [] { return nullptr; }}, FakeKernelFile(), "nowhere")
          .value();
};

}  // namespace motley::engine
