// Our own declarations of CUDA's driver against NVIDIA's, where check_header.sh compiles it.
#include <cuda.h>

#include <type_traits>

#include "worker/engine/kernels/driver_api.h"

namespace motley::engine {
namespace {

template <typename Ours, typename Theirs>
constexpr bool SamePassed() {
  if constexpr (std::is_same_v<Ours, Theirs>) {
    return true;
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using OurTarget = std::remove_pointer_t<Ours>;
    using TheirTarget = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_class_v<OurTarget> && std::is_class_v<TheirTarget>) {
      return true;
    } else {
      return SamePassed<OurTarget, TheirTarget>();
    }
  } else {
    return std::is_enum_v<Ours> && std::is_enum_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}
template <typename Ours, typename Theirs>
struct SameFunction : std::false_type {};
template <typename OurReturn, typename... Ours, typename TheirReturn, typename... Theirs>
struct SameFunction<OurReturn (*)(Ours...), TheirReturn (*)(Theirs...)> {
  static constexpr bool Compare() {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) {
      return false;
    } else {
      return SamePassed<OurReturn, TheirReturn>() && (SamePassed<Ours, Theirs>() && ...);
    }
  }
  static constexpr bool value = Compare();
};

#define SAME_FUNCTION(name) static_assert(SameFunction<decltype(DriverApi::name), decltype(&::name)>::value, #name)
#define SAME_VALUE(name) static_assert(static_cast<unsigned>(name) == static_cast<unsigned>(::name), #name)

SAME_FUNCTION(cuInit);
SAME_FUNCTION(cuDriverGetVersion);
SAME_FUNCTION(cuGetErrorName);
SAME_FUNCTION(cuDeviceGet);
SAME_FUNCTION(cuDeviceGetAttribute);
SAME_FUNCTION(cuDevicePrimaryCtxRetain);
SAME_FUNCTION(cuCtxGetCurrent);
SAME_FUNCTION(cuCtxSetCurrent);
SAME_FUNCTION(cuModuleLoadData);
SAME_FUNCTION(cuModuleUnload);
SAME_FUNCTION(cuModuleGetFunction);
SAME_FUNCTION(cuLaunchKernel);
SAME_VALUE(CUDA_SUCCESS);
SAME_VALUE(CUDA_ERROR_INVALID_IMAGE);
SAME_VALUE(CUDA_ERROR_INVALID_CONTEXT);
SAME_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_VALUE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME_VALUE(CUDA_ERROR_NOT_FOUND);
SAME_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

}  // namespace
}  // namespace motley::engine
