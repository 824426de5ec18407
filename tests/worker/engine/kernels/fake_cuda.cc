// CUDA's driver over host memory, opened by tests as the real one is. A module's code is "fake sm_90"; a function is the kernel
// of its name as the host compiles it, run at once on an emulated card. It refuses what the real one refuses: a thread without a
// context, grids of nothing, blocks that a kernel is not compiled for, functions that a module lacks. MOTLEY_FAKE_CUDA:
// "capability driver's version", "90 12040".
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "tests/worker/engine/kernels/host_kernels.h"
#include "worker/engine/kernels/driver_api.h"

namespace motley::engine {
namespace {

constexpr CUdevice kOnlyDevice = 0;
// Of a block whose kernel takes any number of warps: to change threads costs more here than what they do.
constexpr unsigned kFewThreads = 64;
thread_local CUcontext current = nullptr;
std::atomic<long> launches = 0;
std::mutex failure_mutex;
std::string failure;  // guarded by failure_mutex

CUcontext Primary() { return reinterpret_cast<CUcontext>(&launches); }

struct Setting {
  int capability = 90, version = 12090;
  Setting() {
    const char* text = std::getenv("MOTLEY_FAKE_CUDA");
    if (text != nullptr) std::sscanf(text, "%d %d", &capability, &version);
  }
};

CUresult Launch(const kernels::HostKernel& kernel, const kernels::emulated::Launch& launch, const void* arguments) {
  const std::string said = kernels::emulated::RunGrid(launch, [&] { kernel.run(arguments); });
  if (said.empty()) return CUDA_SUCCESS;
  const std::lock_guard<std::mutex> lock(failure_mutex);
  failure = said;
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = Setting().version;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult result, const char** name) {
  switch (result) {
    case CUDA_ERROR_INVALID_CONTEXT:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      *name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
      break;
    case CUDA_ERROR_NOT_FOUND:
      *name = "CUDA_ERROR_NOT_FOUND";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    default:
      *name = "CUDA_ERROR_UNKNOWN";
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = kOnlyDevice;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const int capability = Setting().capability;
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? capability / 10 : capability % 10;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = Primary();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (current != Primary()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::string code(static_cast<const char*>(image));
  if (code != "fake sm_" + std::to_string(Setting().capability)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  *module = reinterpret_cast<CUmodule>(&failure);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) { return current == Primary() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  const kernels::HostKernel* const found = kernels::FindHostKernel(name);
  *function = reinterpret_cast<CUfunction>(const_cast<kernels::HostKernel*>(found));
  return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream, void** arguments, void** extra) {
  if (current != Primary()) return CUDA_ERROR_INVALID_CONTEXT;
  if (function == nullptr || grid_x * grid_y * grid_z == 0 || arguments == nullptr || extra != nullptr) {
    return CUDA_ERROR_NOT_FOUND;
  }
  const auto& kernel = *reinterpret_cast<const kernels::HostKernel*>(function);
  if (block_x != kernel.threads || block_y * block_z != 1) return CUDA_ERROR_NOT_FOUND;
  const long number = ++launches;
  // As the driver does: the arguments are read when the launch is made, and no byte behind them.
  std::string copy(static_cast<const char*>(arguments[0]), kernel.argument_bytes);
  return Launch(kernel,
                {.grid = {grid_x, grid_y, grid_z},
                 .block = {kernel.any_threads ? kFewThreads : block_x},
                 .shared_bytes = shared_bytes,
                 .seed = static_cast<uint64_t>(number)},
                copy.data());
}

// Not the driver's. For tests.
long FakeCudaLaunches() { return launches; }
const char* FakeCudaFailure() {
  const std::lock_guard<std::mutex> lock(failure_mutex);
  return failure.c_str();
}
}

}  // namespace motley::engine
