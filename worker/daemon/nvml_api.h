// What the worker uses of NVIDIA's management library: our own declarations, so that neither the header nor the library is needed
// to build. Names and values are NVML's; a test compares them with nvml.h. No other file knows NVML's numbers.
#pragma once

#include <type_traits>

namespace motley::worker::nvml {

struct Device;    // opaque
struct EventSet;  // opaque
using DeviceHandle = Device*;
using EventSetHandle = EventSet*;

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kLibRmVersionMismatch = 18;
inline constexpr Return kUnknown = 999;

inline constexpr unsigned kMostNvLinks = 18;
inline constexpr unsigned kTextBytes = 96;  // of a name, a UUID, a driver's version
inline constexpr unsigned long long kNotAvailable = ~0ULL;

// Of enumerations, by value.
inline constexpr int kClockSm = 1;
inline constexpr int kUncorrectedError = 1;
inline constexpr int kVolatileCounter = 0;  // since the driver was loaded
inline constexpr int kTemperatureGpu = 0;
inline constexpr int kEnabled = 1;
inline constexpr int kP2pRead = 0, kP2pNvLink = 2, kP2pOk = 0;
inline constexpr int kModeExclusiveThread = 1, kModeProhibited = 2, kModeExclusiveProcess = 3;

inline constexpr unsigned long long kSwPowerCap = 0x4, kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40,
                                    kHwPowerBrake = 0x80;
inline constexpr unsigned long long kEventXid = 0x8;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Memory {
  unsigned long long total, free, used;
};
struct Memory2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kMemory2Version = sizeof(Memory2) | (2u << 24);
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;  // kNotAvailable: not known
  unsigned gpu_instance, compute_instance;
};
struct Utilization {
  unsigned gpu, memory;  // per cent
};
struct EventData {
  DeviceHandle device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

// A row for each function: its name in the library, the member of the table, its type, and whether nothing works without it.
#define MOTLEY_NVML_FUNCTIONS(X)                                                                                           \
  X(nvmlInit_v2, Init, Return (*)(), true)                                                                                 \
  X(nvmlShutdown, Shutdown, Return (*)(), true)                                                                            \
  X(nvmlErrorString, ErrorString, const char* (*)(Return), true)                                                           \
  X(nvmlSystemGetDriverVersion, DriverVersion, Return (*)(char*, unsigned), true)                                          \
  X(nvmlSystemGetCudaDriverVersion_v2, CudaDriverVersion, Return (*)(int*), false)                                         \
  X(nvmlSystemGetProcessName, ProcessName, Return (*)(unsigned, char*, unsigned), false)                                   \
  X(nvmlDeviceGetCount_v2, DeviceCount, Return (*)(unsigned*), true)                                                       \
  X(nvmlDeviceGetHandleByIndex_v2, HandleByIndex, Return (*)(unsigned, DeviceHandle*), true)                               \
  X(nvmlDeviceGetName, Name, Return (*)(DeviceHandle, char*, unsigned), true)                                              \
  X(nvmlDeviceGetUUID, Uuid, Return (*)(DeviceHandle, char*, unsigned), true)                                              \
  X(nvmlDeviceGetPciInfo_v3, GetPciInfo, Return (*)(DeviceHandle, PciInfo*), true)                                         \
  X(nvmlDeviceGetMemoryInfo, MemoryInfo, Return (*)(DeviceHandle, Memory*), true)                                          \
  X(nvmlDeviceGetMemoryInfo_v2, MemoryInfo2, Return (*)(DeviceHandle, Memory2*), false)                                    \
  X(nvmlDeviceGetCudaComputeCapability, ComputeCapability, Return (*)(DeviceHandle, int*, int*), true)                     \
  X(nvmlDeviceGetMaxPcieLinkGeneration, MaxPcieGeneration, Return (*)(DeviceHandle, unsigned*), false)                     \
  X(nvmlDeviceGetMaxPcieLinkWidth, MaxPcieWidth, Return (*)(DeviceHandle, unsigned*), false)                               \
  X(nvmlDeviceGetCurrPcieLinkWidth, PcieWidth, Return (*)(DeviceHandle, unsigned*), false)                                 \
  X(nvmlDeviceGetNvLinkState, NvLinkState, Return (*)(DeviceHandle, unsigned, int*), false)                                \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2, NvLinkPeer, Return (*)(DeviceHandle, unsigned, PciInfo*), false)                  \
  X(nvmlDeviceGetP2PStatus, P2pStatus, Return (*)(DeviceHandle, DeviceHandle, int, int*), false)                           \
  X(nvmlDeviceGetEnforcedPowerLimit, PowerLimit, Return (*)(DeviceHandle, unsigned*), false)                               \
  X(nvmlDeviceGetPowerUsage, Power, Return (*)(DeviceHandle, unsigned*), false)                                            \
  X(nvmlDeviceGetClockInfo, Clock, Return (*)(DeviceHandle, int, unsigned*), false)                                        \
  X(nvmlDeviceGetTemperature, Temperature, Return (*)(DeviceHandle, int, unsigned*), false)                                \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, ThrottleReasons, Return (*)(DeviceHandle, unsigned long long*), false)      \
  X(nvmlDeviceGetTotalEccErrors, EccErrors, Return (*)(DeviceHandle, int, int, unsigned long long*), false)                \
  X(nvmlDeviceGetRemappedRows, RemappedRows, Return (*)(DeviceHandle, unsigned*, unsigned*, unsigned*, unsigned*), false)  \
  X(nvmlDeviceGetComputeMode, ComputeMode, Return (*)(DeviceHandle, int*), false)                                          \
  X(nvmlDeviceGetMigMode, MigMode, Return (*)(DeviceHandle, unsigned*, unsigned*), false)                                  \
  X(nvmlDeviceGetUtilizationRates, UtilizationRates, Return (*)(DeviceHandle, Utilization*), false)                        \
  X(nvmlDeviceGetComputeRunningProcesses_v3, ComputeProcesses, Return (*)(DeviceHandle, unsigned*, ProcessInfo*), false)   \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, GraphicsProcesses, Return (*)(DeviceHandle, unsigned*, ProcessInfo*), false) \
  X(nvmlEventSetCreate, EventSetCreate, Return (*)(EventSetHandle*), false)                                                \
  X(nvmlDeviceRegisterEvents, RegisterEvents, Return (*)(DeviceHandle, unsigned long long, EventSetHandle), false)         \
  X(nvmlEventSetWait_v2, EventSetWait, Return (*)(EventSetHandle, EventData*, unsigned), false)                            \
  X(nvmlEventSetFree, EventSetFree, Return (*)(EventSetHandle), false)

// The library's functions. Those that an older driver lacks may be null.
struct Functions {
#define MOTLEY_NVML_MEMBER(name, member, type, required) std::type_identity_t<type> member = nullptr;
  MOTLEY_NVML_FUNCTIONS(MOTLEY_NVML_MEMBER)
#undef MOTLEY_NVML_MEMBER
};

}  // namespace motley::worker::nvml
