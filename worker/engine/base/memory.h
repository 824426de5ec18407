// Counts every byte that tensors hold in this process and refuses what does not fit the device, as a card would: the
// allocation fails with c10::OutOfMemoryError (a c10::Error) whose text names the device, the bytes asked and the cap.
// Bytes are those asked for: no rounding, no allocator overhead. Tensors made before the first call are not counted.
// Thread-safe. Plain functions because c10 has one CPU allocator per process.
#pragma once

#include <cstdint>
#include <string_view>

namespace motley::engine {

// Installs the counting allocator (once; later calls only change cap and name). cap_bytes 0 = no cap.
void InstallMemoryLimit(int64_t cap_bytes, std::string_view device = "this device");
bool MemoryLimitInstalled();

int64_t MemoryCapBytes();  // 0 = no cap
int64_t CurrentBytes();
int64_t PeakBytes();  // since the last ResetPeak
void ResetPeak();     // the peak becomes CurrentBytes()

}  // namespace motley::engine
