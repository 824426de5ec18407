// CUDA's words on the host, for kernels of worker/engine/kernels, which are included behind this: threads are fibers. One block
// after the other, in an order by a seed; so are a block's threads between two barriers. Shared memory begins as numbers that are
// none. Said instead of done: a 16-byte access that is not aligned, a barrier that not all threads of the block reach, a shuffle
// that not all lanes of the warp reach, more threads or shared memory than every card has.
//
// It does not see: speed, what other blocks' writes look like at the same time (a missing fence), lines of the card alone.
#pragma once
#define MOTLEY_EMULATED_CARD 1

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace motley::kernels::emulated {

struct Launch {
  dim3 grid, block;
  size_t shared_bytes = 0;
  uint64_t seed = 0;
  // The x of the blocks that run: of a grid that is too large to run whole.
  unsigned first_block = 0, last_block = ~0u;
};

// Empty: it ran. Else what the kernel must not do; the rest of the grid did not run. Any thread may call it, one kernel at a
// time.
std::string RunGrid(const Launch& launch, const std::function<void()>& kernel);

// What the thread that runs now sees.
const dim3& ThreadIndex();
const dim3& BlockIndex();
const dim3& BlockSize();
const dim3& GridSize();
std::byte* SharedBytes();
void Barrier();
float ShuffleXor(uint32_t mask, float value, int apart);
void Fail(const std::string& why);  // ends the launch

float WideHalf(uint16_t bits);
uint16_t NarrowHalf(float value);

}  // namespace motley::kernels::emulated

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define threadIdx (::motley::kernels::emulated::ThreadIndex())
#define blockIdx (::motley::kernels::emulated::BlockIndex())
#define blockDim (::motley::kernels::emulated::BlockSize())
#define gridDim (::motley::kernels::emulated::GridSize())

namespace motley::kernels {

using std::int64_t, std::uint16_t, std::uint32_t;

inline void __syncthreads() { emulated::Barrier(); }
inline void __threadfence() {}
inline float __shfl_xor_sync(uint32_t mask, float value, int apart) { return emulated::ShuffleXor(mask, value, apart); }
template <typename T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}
inline float expf(float value) { return std::exp(value); }
inline float logf(float value) { return std::log(value); }
inline float sqrtf(float value) { return std::sqrt(value); }
inline float fmaxf(float a, float b) { return std::fmax(a, b); }
inline float rsqrtf(float value) { return 1 / std::sqrt(value); }

inline uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline void CheckAligned(const void* at) {
  if (reinterpret_cast<uintptr_t>(at) % 16 != 0) emulated::Fail("a 16-byte access that is not aligned");
}
template <typename T>
T* SharedMemory() {
  return reinterpret_cast<T*>(emulated::SharedBytes());
}

}  // namespace motley::kernels
