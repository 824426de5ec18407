#include "worker/engine/kernels/kernel_launcher.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/engine/kernels/driver_library.h"

namespace motley::engine {
namespace {

size_t TypeOf(DType dtype) {
  const auto* found = std::find_if(std::begin(kernels::kKernelTypes), std::end(kernels::kKernelTypes),
                                   [dtype](const kernels::KernelType& type) { return type.name == DTypeName(dtype); });
  return static_cast<size_t>(found - std::begin(kernels::kKernelTypes));
}

absl::StatusOr<int> CapabilityOf(const DriverApi& driver, CUdevice device) {
  int major = 0, minor = 0;
  MOTLEY_RETURN_IF_ERROR(DriverStatus(driver, "asking for the card's compute capability",
                                      driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)));
  MOTLEY_RETURN_IF_ERROR(DriverStatus(driver, "asking for the card's compute capability",
                                      driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)));
  return 10 * major + minor;
}

// As the driver words it where it is older than the compiler.
bool IsOfAnOlderDriver(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KernelLauncher>> KernelLauncher::Load(const DriverApi& driver, int driver_version, Card card,
                                                                     const KernelFile& file, const std::string& place) {
  MOTLEY_RETURN_IF_ERROR(CheckKernelsOfThisBuild(file, place));
  CUdevice device = 0;
  MOTLEY_RETURN_IF_ERROR(DriverStatus(driver, "looking for the card", driver.cuDeviceGet(&device, card.ordinal)));
  MOTLEY_ASSIGN_OR_RETURN(const int capability, CapabilityOf(driver, device));
  MOTLEY_ASSIGN_OR_RETURN(const KernelImage* image, ImageFor(file, capability, place));
  std::unique_ptr<KernelLauncher> launcher(new KernelLauncher(driver, std::move(card)));
  MOTLEY_RETURN_IF_ERROR(DriverStatus(driver, "opening the card", driver.cuDevicePrimaryCtxRetain(&launcher->context_, device)));
  MOTLEY_RETURN_IF_ERROR(launcher->UseContext());
  MOTLEY_RETURN_IF_ERROR(launcher->LoadImage(*image, file, driver_version, place));
  return launcher;
}

KernelLauncher::~KernelLauncher() {
  if (module_ != nullptr && UseContext().ok()) driver_.cuModuleUnload(module_);
}

absl::Status KernelLauncher::LoadImage(const KernelImage& image, const KernelFile& file, int driver_version,
                                       const std::string& place) {
  digest_ = file.digest;
  image_ = ImageName(image);
  // Of a cubin its own length says where it ends; PTX must end with a zero, which c_str has.
  const CUresult loaded = driver_.cuModuleLoadData(&module_, image.code.c_str());
  if (IsOfAnOlderDriver(loaded)) {
    return absl::FailedPreconditionError(
        absl::StrCat(DriverStatus(driver_, absl::StrCat("loading kernels of ", place), loaded).message(), ": ", image_, " by ",
                     file.compiler, " is not for a driver of CUDA ", driver_version / 1000, ".", driver_version % 1000 / 10,
                     "; install a newer driver, or let `./run setup --gpu` compile kernels here"));
  }
  MOTLEY_RETURN_IF_ERROR(DriverStatus(driver_, absl::StrCat("loading kernels of ", place), loaded));
  for (const CompiledKernel& kernel : file.kernels) {
    const auto* row = std::find_if(std::begin(kernels::kKernels), std::end(kernels::kKernels),
                                   [&](const kernels::KernelRow& one) { return one.name == kernel.name; });
    const absl::StatusOr<DType> dtype = ParseDType(kernel.dtype);
    if (row == std::end(kernels::kKernels) || !dtype.ok() || !HasType(*dtype)) continue;  // of a later build
    CUfunction& function = functions_[static_cast<size_t>(row - std::begin(kernels::kKernels))][TypeOf(*dtype)];
    const CUresult found = driver_.cuModuleGetFunction(&function, module_, kernel.symbol.c_str());
    MOTLEY_RETURN_IF_ERROR(
        DriverStatus(driver_, absl::StrCat("looking for ", kernel.name, " of ", kernel.dtype, " in ", place), found));
  }
  return absl::OkStatus();
}

// A lane's thread may have none: the runtime makes it current at its first call there, the driver never does.
absl::Status KernelLauncher::UseContext() const {
  CUcontext current = nullptr;
  MOTLEY_RETURN_IF_ERROR(DriverStatus(driver_, "asking for the thread's context", driver_.cuCtxGetCurrent(&current)));
  if (current == context_) return absl::OkStatus();
  return DriverStatus(driver_, "using the card's context", driver_.cuCtxSetCurrent(context_));
}

absl::Status KernelLauncher::LaunchRow(size_t row, DType dtype, unsigned blocks, void* arguments, unsigned shared_bytes) const {
  const auto what = [&] {
    return absl::StrCat("launching ", std::string(kernels::kKernels[row].name), " of ", std::string(DTypeName(dtype)));
  };
  const size_t type = TypeOf(dtype);
  if (type >= std::size(kernels::kKernelTypes)) return absl::InternalError(absl::StrCat(what(), ": there is none"));
  MOTLEY_RETURN_IF_ERROR(UseContext());
  void* parameters[] = {arguments};
  const CUresult result = driver_.cuLaunchKernel(functions_[row][type], blocks, 1, 1, kernels::kKernels[row].threads, 1, 1,
                                                 shared_bytes, static_cast<CUstream>(card_.stream()), parameters, nullptr);
  return result == CUDA_SUCCESS ? absl::OkStatus() : DriverStatus(driver_, what(), result);
}

absl::Status KernelLauncher::LaunchEachOnce(DType dtype) const {
  if (!HasType(dtype)) return absl::OkStatus();
  for (size_t row = 0; row < std::size(kernels::kKernels); ++row) {
    std::vector<uint64_t> nothing(kernels::kKernels[row].argument_bytes / sizeof(uint64_t) + 1);
    MOTLEY_RETURN_IF_ERROR(LaunchRow(row, dtype, /*blocks=*/1, nothing.data(), /*shared_bytes=*/0));
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
