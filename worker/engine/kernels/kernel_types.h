// Words of the kernels: half types, 16-byte packs, sums over a warp. Read by NVRTC, and by the host behind an emulated card
// (tests/worker/engine/kernels/emulated_card.h). What stands between #if of the card alone no test without a card sees: the
// conversions of half types and where shared memory lies.
#pragma once

#if !defined(__CUDACC_RTC__) && !defined(MOTLEY_EMULATED_CARD)
#error "kernels are compiled by NVRTC, or behind tests/worker/engine/kernels/emulated_card.h"
#endif

#include "worker/engine/kernels/kernel_arguments.h"

#if defined(__CUDACC_RTC__)
#define MOTLEY_UNROLL _Pragma("unroll")
#else
#define MOTLEY_UNROLL
#endif

namespace motley::kernels {

struct BFloat16Bits {
  uint16_t bits;
};
struct Float16Bits {
  uint16_t bits;
};

#if defined(__CUDACC_RTC__)
__device__ __forceinline__ uint32_t BitsOf(float value) { return __float_as_uint(value); }
__device__ __forceinline__ float FloatOf(uint32_t bits) { return __uint_as_float(bits); }
__device__ __forceinline__ void CheckAligned(const void*) {}
template <typename T>
__device__ __forceinline__ T* SharedMemory() {
  extern __shared__ __align__(16) unsigned char room[];
  return reinterpret_cast<T*>(room);
}
#endif

// Arithmetic is float32 whatever is stored. Narrow rounds to the nearest, ties to even.
template <typename T>
__device__ __forceinline__ T Narrow(float value);

__device__ __forceinline__ float Wide(float value) { return value; }
template <>
__device__ __forceinline__ float Narrow<float>(float value) {
  return value;
}

__device__ __forceinline__ float Wide(BFloat16Bits value) { return FloatOf(uint32_t{value.bits} << 16); }
template <>
__device__ __forceinline__ BFloat16Bits Narrow<BFloat16Bits>(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  BFloat16Bits narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
#else
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};  // not a number, as the instruction says it
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

#if defined(__CUDACC_RTC__)
__device__ __forceinline__ float Wide(Float16Bits value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}
template <>
__device__ __forceinline__ Float16Bits Narrow<Float16Bits>(float value) {
  Float16Bits narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
}
#else
inline float Wide(Float16Bits value) { return emulated::WideHalf(value.bits); }
template <>
inline Float16Bits Narrow<Float16Bits>(float value) {
  return {emulated::NarrowHalf(value)};
}
#endif

// As what is stored would be read again: where an operator of its own would have written.
template <typename T>
__device__ __forceinline__ float Rounded(float value) {
  return Wide(Narrow<T>(value));
}

template <typename T>
struct alignas(kPackBytes) Pack {
  static constexpr int kElements = kPackBytes / sizeof(T);
  T of[kElements];
};
template <typename T>
__device__ __forceinline__ Pack<T> Load(const T* from) {
  CheckAligned(from);
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <typename T>
__device__ __forceinline__ void Store(T* to, const Pack<T>& pack) {
  CheckAligned(to);
  *reinterpret_cast<Pack<T>*>(to) = pack;
}

// Of all lanes of the caller's warp, which all call it; each has the sum, with the same bits.
__device__ __forceinline__ float WarpSum(float value) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffffu, value, apart);
  return value;
}
// The same of the greatest, which passes over what is no number.
__device__ __forceinline__ float WarpMax(float value) {
  for (int apart = 16; apart > 0; apart /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
  return value;
}

}  // namespace motley::kernels
