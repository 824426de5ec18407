// Our own declarations against NVIDIA's header. They are compared when this is compiled; builds without the header (with
// sanitizers) leave it out.
#include "worker/daemon/nvml_api.h"

#include <gtest/gtest.h>

#if __has_include(<nvml.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // functions that older drivers have, too
#include <nvml.h>

#include <cstddef>
#include <type_traits>

namespace motley::worker::nvml {
namespace {

// Passed the same way: the same type, an enumeration for a whole number of its size, or a pointer to something of the same kind.
// Structures are compared below, field by field.
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
    return std::is_integral_v<Ours> && std::is_enum_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
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

#define MOTLEY_NVML_COMPARE(name, member, type, required) \
  static_assert(SameFunction<std::type_identity_t<type>, decltype(&::name)>::value, #name);
MOTLEY_NVML_FUNCTIONS(MOTLEY_NVML_COMPARE)
#undef MOTLEY_NVML_COMPARE

static_assert(kSuccess == NVML_SUCCESS && kNotSupported == NVML_ERROR_NOT_SUPPORTED && kNoPermission == NVML_ERROR_NO_PERMISSION);
static_assert(kInsufficientSize == NVML_ERROR_INSUFFICIENT_SIZE && kDriverNotLoaded == NVML_ERROR_DRIVER_NOT_LOADED);
static_assert(kTimeout == NVML_ERROR_TIMEOUT && kFunctionNotFound == NVML_ERROR_FUNCTION_NOT_FOUND);
static_assert(kGpuIsLost == NVML_ERROR_GPU_IS_LOST && kResetRequired == NVML_ERROR_RESET_REQUIRED &&
              kUnknown == NVML_ERROR_UNKNOWN);
static_assert(kLibRmVersionMismatch == NVML_ERROR_LIB_RM_VERSION_MISMATCH);
static_assert(kMostNvLinks == NVML_NVLINK_MAX_LINKS && kTextBytes >= NVML_DEVICE_UUID_V2_BUFFER_SIZE);
static_assert(kTextBytes >= NVML_DEVICE_NAME_V2_BUFFER_SIZE && kTextBytes >= NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
static_assert(kNotAvailable == static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE));
static_assert(kClockSm == NVML_CLOCK_SM && kUncorrectedError == NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
static_assert(kVolatileCounter == NVML_VOLATILE_ECC && kTemperatureGpu == NVML_TEMPERATURE_GPU &&
              kEnabled == NVML_FEATURE_ENABLED);
static_assert(kModeExclusiveThread == NVML_COMPUTEMODE_EXCLUSIVE_THREAD && kModeProhibited == NVML_COMPUTEMODE_PROHIBITED);
static_assert(kModeExclusiveProcess == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
static_assert(kP2pRead == NVML_P2P_CAPS_INDEX_READ && kP2pNvLink == NVML_P2P_CAPS_INDEX_NVLINK && kP2pOk == NVML_P2P_STATUS_OK);
static_assert(kSwPowerCap == nvmlClocksEventReasonSwPowerCap && kHwSlowdown == nvmlClocksThrottleReasonHwSlowdown);
static_assert(kSwThermal == nvmlClocksEventReasonSwThermalSlowdown && kHwThermal == nvmlClocksThrottleReasonHwThermalSlowdown);
static_assert(kHwPowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown && kEventXid == nvmlEventTypeXidCriticalError);

static_assert(sizeof(PciInfo) == sizeof(nvmlPciInfo_t) && offsetof(PciInfo, domain) == offsetof(nvmlPciInfo_t, domain));
static_assert(offsetof(PciInfo, bus) == offsetof(nvmlPciInfo_t, bus) &&
              offsetof(PciInfo, device) == offsetof(nvmlPciInfo_t, device));
static_assert(offsetof(PciInfo, bus_id) == offsetof(nvmlPciInfo_t, busId) &&
              sizeof(PciInfo::bus_id) == sizeof(nvmlPciInfo_t::busId));
static_assert(sizeof(Memory) == sizeof(nvmlMemory_t) && offsetof(Memory, total) == offsetof(nvmlMemory_t, total));
static_assert(offsetof(Memory, free) == offsetof(nvmlMemory_t, free) && offsetof(Memory, used) == offsetof(nvmlMemory_t, used));
static_assert(sizeof(Memory2) == sizeof(nvmlMemory_v2_t) && kMemory2Version == nvmlMemory_v2);
static_assert(offsetof(Memory2, total) == offsetof(nvmlMemory_v2_t, total) &&
              offsetof(Memory2, free) == offsetof(nvmlMemory_v2_t, free));
static_assert(offsetof(Memory2, reserved) == offsetof(nvmlMemory_v2_t, reserved));
static_assert(offsetof(Memory2, used) == offsetof(nvmlMemory_v2_t, used));
static_assert(sizeof(ProcessInfo) == sizeof(nvmlProcessInfo_t) && offsetof(ProcessInfo, pid) == offsetof(nvmlProcessInfo_t, pid));
static_assert(offsetof(ProcessInfo, used_bytes) == offsetof(nvmlProcessInfo_t, usedGpuMemory));
static_assert(sizeof(Utilization) == sizeof(nvmlUtilization_t) && offsetof(Utilization, gpu) == offsetof(nvmlUtilization_t, gpu));
static_assert(sizeof(EventData) == sizeof(nvmlEventData_t) && offsetof(EventData, device) == offsetof(nvmlEventData_t, device));
static_assert(offsetof(EventData, type) == offsetof(nvmlEventData_t, eventType));
static_assert(offsetof(EventData, data) == offsetof(nvmlEventData_t, eventData));

TEST(NvmlApi, IsThatOfTheHeader) { SUCCEED() << "compared when compiled"; }

}  // namespace
}  // namespace motley::worker::nvml
#else
TEST(NvmlApi, IsThatOfTheHeader) { GTEST_SKIP() << "built without nvml.h"; }
#endif
