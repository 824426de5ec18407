// A libnvidia-ml.so.1 without a card: answers from the JSON file that $MOTLEY_FAKE_NVML names, read anew at every call, so that a
// test can let a card fall off the bus by writing another file. The keys are those of fake_cards.h; what a card does not name is
// "not supported". "errors" (of all, or of a card) gives a function's error by name.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "worker/daemon/nvml_api.h"

namespace {

using Json = nlohmann::json;
using motley::worker::nvml::DeviceHandle;
using motley::worker::nvml::EventSetHandle;
using motley::worker::nvml::Return;
namespace nvml = motley::worker::nvml;

constexpr uintptr_t kHandleBase = 0x1000;

Json ReadAll() {
  const char* path = std::getenv("MOTLEY_FAKE_NVML");
  std::ifstream in(path == nullptr ? "" : path);
  Json json = in ? Json::parse(in, nullptr, /*allow_exceptions=*/false) : Json();
  return json.is_object() ? json : Json::object();
}

Return ErrorIn(const Json& json, const char* function) {
  const Json errors = json.value("errors", Json::object());
  return errors.value(function, nvml::kSuccess);
}

unsigned IndexOf(DeviceHandle card) { return static_cast<unsigned>(reinterpret_cast<uintptr_t>(card) - kHandleBase); }
DeviceHandle HandleOf(unsigned index) { return reinterpret_cast<DeviceHandle>(kHandleBase + index); }

// The card's object, or why this function fails.
Return Find(DeviceHandle handle, const char* function, Json* card) {
  const Json all = ReadAll();
  if (const Return error = ErrorIn(all, function); error != nvml::kSuccess) return error;
  const Json cards = all.value("cards", Json::array());
  if (IndexOf(handle) >= cards.size()) return 2;  // NVML_ERROR_INVALID_ARGUMENT
  *card = cards[IndexOf(handle)];
  if (card->value("lost", false)) return nvml::kGpuIsLost;
  return ErrorIn(*card, function);
}

template <typename Number>
Return Answer(DeviceHandle handle, const char* function, const char* key, Number* out) {
  Json card;
  if (const Return error = Find(handle, function, &card); error != nvml::kSuccess) return error;
  if (!card.contains(key)) return nvml::kNotSupported;
  *out = card[key].get<Number>();
  return nvml::kSuccess;
}

Return Copy(const std::string& text, char* out, unsigned length) {
  if (text.size() + 1 > length) return nvml::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

Return CopyOf(DeviceHandle handle, const char* function, const char* key, char* out, unsigned length) {
  std::string text;
  const Return error = Answer(handle, function, key, &text);
  return error == nvml::kSuccess ? Copy(text, out, length) : error;
}

nvml::PciInfo PciOf(const std::string& bus) {
  nvml::PciInfo info = {};
  std::sscanf(bus.c_str(), "%x:%x:%x", &info.domain, &info.bus, &info.device);
  std::snprintf(info.bus_id, sizeof(info.bus_id), "%08X:%02X:%02X.0", info.domain, info.bus, info.device);
  return info;
}

Return Processes(DeviceHandle handle, const char* function, const char* key, unsigned* count, nvml::ProcessInfo* out) {
  Json rows;
  if (const Return error = Answer(handle, function, key, &rows); error != nvml::kSuccess) return error;
  const unsigned room = *count;
  *count = static_cast<unsigned>(rows.size());
  if (rows.size() > room) return nvml::kInsufficientSize;
  for (const Json& row : rows) {
    *out++ = {row.at("pid").get<unsigned>(), row.value("bytes", nvml::kNotAvailable), ~0U, ~0U};
  }
  return nvml::kSuccess;
}

std::mutex mutex;
std::map<unsigned, size_t> told;  // Xids of a card that were handed out

}  // namespace

extern "C" {

Return nvmlInit_v2() { return ErrorIn(ReadAll(), "nvmlInit_v2"); }
Return nvmlShutdown() { return nvml::kSuccess; }
const char* nvmlErrorString(Return code) { return code == nvml::kUnknown ? "Unknown Error" : "an error of the fake"; }
Return nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return Copy(ReadAll().value("driver", "580.65.06"), out, length);
}
Return nvmlSystemGetCudaDriverVersion_v2(int* out) {
  *out = ReadAll().value("driver_cuda", 13000);
  return nvml::kSuccess;
}
Return nvmlSystemGetProcessName(unsigned pid, char* out, unsigned length) {
  const std::string name = ReadAll().value("names", Json::object()).value(std::to_string(pid), "");
  return name.empty() ? nvml::kNoPermission : Copy(name, out, length);
}
Return nvmlDeviceGetCount_v2(unsigned* out) {
  const Json all = ReadAll();
  *out = static_cast<unsigned>(all.value("cards", Json::array()).size());
  return ErrorIn(all, "nvmlDeviceGetCount_v2");
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, DeviceHandle* out) {
  *out = HandleOf(index);
  Json card;
  return Find(*out, "nvmlDeviceGetHandleByIndex_v2", &card);
}
Return nvmlDeviceGetName(DeviceHandle card, char* out, unsigned length) { return CopyOf(card, __func__, "name", out, length); }
Return nvmlDeviceGetUUID(DeviceHandle card, char* out, unsigned length) { return CopyOf(card, __func__, "uuid", out, length); }
Return nvmlDeviceGetPciInfo_v3(DeviceHandle card, nvml::PciInfo* out) {
  std::string bus;
  const Return error = Answer(card, __func__, "bus", &bus);
  if (error == nvml::kSuccess) *out = PciOf(bus);
  return error;
}
Return nvmlDeviceGetMemoryInfo(DeviceHandle handle, nvml::Memory* out) {
  Json card;
  if (const Return error = Find(handle, __func__, &card); error != nvml::kSuccess) return error;
  const auto total = card.at("memory").get<unsigned long long>();
  const auto used = card.value("used", 0ULL) + card.value("reserved", 0ULL);
  *out = {total, total - used, used};
  return nvml::kSuccess;
}
Return nvmlDeviceGetMemoryInfo_v2(DeviceHandle handle, nvml::Memory2* out) {
  Json card;
  if (out->version != nvml::kMemory2Version) return 25;  // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  if (const Return error = Find(handle, __func__, &card); error != nvml::kSuccess) return error;
  out->total = card.at("memory").get<unsigned long long>();
  out->reserved = card.value("reserved", 0ULL);
  out->used = card.value("used", 0ULL);
  out->free = out->total - out->reserved - out->used;
  return nvml::kSuccess;
}
Return nvmlDeviceGetCudaComputeCapability(DeviceHandle card, int* major, int* minor) {
  int both = 0;
  const Return error = Answer(card, __func__, "capability", &both);
  *major = both / 10, *minor = both % 10;
  return error;
}
Return nvmlDeviceGetMaxPcieLinkGeneration(DeviceHandle card, unsigned* out) { return Answer(card, __func__, "generation", out); }
Return nvmlDeviceGetMaxPcieLinkWidth(DeviceHandle card, unsigned* out) { return Answer(card, __func__, "most_lanes", out); }
Return nvmlDeviceGetCurrPcieLinkWidth(DeviceHandle card, unsigned* out) { return Answer(card, __func__, "lanes", out); }
Return nvmlDeviceGetNvLinkState(DeviceHandle card, unsigned link, int* out) {
  Json peers;
  const Return error = Answer(card, __func__, "nvlink", &peers);
  *out = link < peers.size() ? nvml::kEnabled : 0;
  return error;
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(DeviceHandle card, unsigned link, nvml::PciInfo* out) {
  Json peers;
  const Return error = Answer(card, __func__, "nvlink", &peers);
  if (error == nvml::kSuccess) *out = PciOf(peers.at(link).get<std::string>());
  return error;
}
// "p2p" and "nvswitch": bus addresses of the cards that this one reaches past the host's memory, and of those by NVLink switches.
Return nvmlDeviceGetP2PStatus(DeviceHandle card, DeviceHandle other, int index, int* out) {
  Json peers;
  std::string bus;
  if (const Return error = Answer(other, __func__, "bus", &bus); error != nvml::kSuccess) return error;
  const Return error = Answer(card, __func__, index == nvml::kP2pNvLink ? "nvswitch" : "p2p", &peers);
  *out = std::find(peers.begin(), peers.end(), bus) != peers.end() ? nvml::kP2pOk : 1;
  return error;
}
Return nvmlDeviceGetEnforcedPowerLimit(DeviceHandle card, unsigned* out) { return Answer(card, __func__, "power_limit", out); }
Return nvmlDeviceGetPowerUsage(DeviceHandle card, unsigned* out) { return Answer(card, __func__, "power", out); }
Return nvmlDeviceGetClockInfo(DeviceHandle card, int, unsigned* out) { return Answer(card, __func__, "clock", out); }
Return nvmlDeviceGetTemperature(DeviceHandle card, int, unsigned* out) { return Answer(card, __func__, "temperature", out); }
Return nvmlDeviceGetCurrentClocksThrottleReasons(DeviceHandle card, unsigned long long* out) {
  return Answer(card, __func__, "throttle", out);
}
Return nvmlDeviceGetTotalEccErrors(DeviceHandle card, int, int, unsigned long long* out) {
  return Answer(card, __func__, "ecc", out);
}
Return nvmlDeviceGetRemappedRows(DeviceHandle card, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                 unsigned* failed) {
  *corrected = *uncorrected = *pending = 0;
  return Answer(card, __func__, "remap_failed", failed);
}
Return nvmlDeviceGetComputeMode(DeviceHandle card, int* out) { return Answer(card, __func__, "mode", out); }
Return nvmlDeviceGetMigMode(DeviceHandle card, unsigned* current, unsigned* pending) {
  *pending = 0;
  return Answer(card, __func__, "mig", current);
}
Return nvmlDeviceGetUtilizationRates(DeviceHandle card, nvml::Utilization* out) {
  return Answer(card, __func__, "utilization", &out->gpu);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle card, unsigned* count, nvml::ProcessInfo* out) {
  return Processes(card, __func__, "processes", count, out);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(DeviceHandle card, unsigned* count, nvml::ProcessInfo* out) {
  return Processes(card, __func__, "graphics", count, out);
}
Return nvmlEventSetCreate(EventSetHandle* out) {
  *out = reinterpret_cast<EventSetHandle>(kHandleBase);
  return nvml::kSuccess;
}
Return nvmlDeviceRegisterEvents(DeviceHandle card, unsigned long long, EventSetHandle) {
  const std::lock_guard lock(mutex);
  told[IndexOf(card)] = 0;
  return nvml::kSuccess;
}
// Never waits.
Return nvmlEventSetWait_v2(EventSetHandle, nvml::EventData* out, unsigned) {
  const Json all = ReadAll();
  const std::lock_guard lock(mutex);
  for (auto& [index, count] : told) {
    const Json cards = all.value("cards", Json::array());
    if (index >= cards.size()) continue;
    const Json xids = cards[index].value("xids", Json::array());
    if (count >= xids.size()) continue;
    *out = {HandleOf(index), nvml::kEventXid, xids[count++].get<unsigned long long>(), ~0U, ~0U};
    return nvml::kSuccess;
  }
  return nvml::kTimeout;
}
Return nvmlEventSetFree(EventSetHandle) { return nvml::kSuccess; }

}  // extern "C"
