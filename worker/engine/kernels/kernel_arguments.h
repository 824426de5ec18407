// What kernels are given: one struct by value for each, read by the launcher, by NVRTC and by the host's build in tests
// (docs/inside/kernels.md). A struct of zeros is nothing to do: a rehearsal launches every kernel with one.
#pragma once

#if defined(__CUDACC_RTC__)
namespace motley::kernels {
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using int64_t = long long;
}  // namespace motley::kernels
#else
#include <cstdint>
#endif

namespace motley::kernels {

// Threads of a block, of kernels that do not say kBlockThreads.
inline constexpr int kThreads = 256;
// Of what a thread reads and writes at once: pointers and rows begin at a multiple of it.
inline constexpr int kPackBytes = 16;

// What is made of the gate, times up. One thread a pack of the output.
struct GatedForwardArguments {
  const void* input;      // [rows, 2 * columns]: gate, then up
  void* output;           // [rows, columns]
  uint32_t packs;         // of the output
  uint32_t packs_of_row;  // of the output: columns / elements of a pack
};
// Its gradients, both in one pass. One thread a pack of the output's gradient.
struct GatedBackwardArguments {
  const void* grad_output;  // [rows, columns]
  const void* input;        // [rows, 2 * columns], as the forward's
  void* grad_input;         // the same
  uint32_t packs;           // of grad_output
  uint32_t packs_of_row;
};
struct SwiGluForwardArguments : GatedForwardArguments {
  static constexpr const char* kKernel = "swiglu_forward";
};
struct SwiGluBackwardArguments : GatedBackwardArguments {
  static constexpr const char* kKernel = "swiglu_backward";
};
struct GeGluForwardArguments : GatedForwardArguments {
  static constexpr const char* kKernel = "geglu_forward";
};
struct GeGluBackwardArguments : GatedBackwardArguments {
  static constexpr const char* kKernel = "geglu_backward";
};
static_assert(sizeof(SwiGluForwardArguments) == 24 && sizeof(GeGluForwardArguments) == 24);
static_assert(sizeof(SwiGluBackwardArguments) == 32 && sizeof(GeGluBackwardArguments) == 32);

// Turns the heads that begin each row by the row's position, in place. One thread a pack of their first halves.
struct RotaryArguments {
  static constexpr const char* kKernel = "rotary";
  void* rows;
  const void* cos;  // [table_rows, half a head]
  const void* sin;
  int64_t row_stride;      // in elements
  uint32_t packs;          // of the first halves of all heads
  uint32_t packs_of_half;  // of one
  uint32_t heads;          // of a row
  uint32_t table_rows;     // the row r is turned by the table's r % table_rows
  float sign;              // 1, or back: -1
  uint32_t unused;
};
static_assert(sizeof(RotaryArguments) == 56);

// [samples, heads, seq_len, head_dim] with a head's dimensions side by side; strides in elements.
struct HeadsPlace {
  const void* at;
  int64_t sample_stride, head_stride, position_stride;
};
// Puts gradients of queries, keys and values side by side; those of queries and keys are turned back. One thread a pack of heads'
// first halves.
struct PackHeadsArguments {
  static constexpr const char* kKernel = "pack_heads";
  HeadsPlace q, k, v;
  void* output;     // [rows, heads + 2 kv_heads, head_dim]
  const void* cos;  // [table_rows, half a head]
  const void* sin;
  uint32_t packs;          // of the first halves of all heads
  uint32_t packs_of_half;  // of one
  uint32_t heads, kv_heads, seq_len, table_rows;
};
static_assert(sizeof(PackHeadsArguments) == 144);

// Sums over rows. A block has so many packs beside each other, 128 bytes of a row, and threads for so many rows below each other.
// The first blocks are those of the first part, one for each 128 bytes of columns.
inline constexpr uint32_t kSumPacks = 8, kSumRows = kThreads / kSumPacks;
struct BiasGradientArguments {
  static constexpr const char* kKernel = "bias_gradient";
  const void* input;  // [rows, columns]
  float* output;      // [parts, columns]
  uint32_t rows, columns, rows_of_part;
  uint32_t of_sums;  // 1: the input is float32, an earlier launch's output
  uint32_t adds;     // 1: to what is there
  uint32_t unused;
};
static_assert(sizeof(BiasGradientArguments) == 40);

// The last residual of a layer. One thread a pack.
struct ResidualForwardArguments {
  static constexpr const char* kKernel = "residual_forward";
  void* sum;            // [rows, columns]: what the product made, then the sum
  const void* carried;  // the same
  float* not_finite;    // becomes no number where the sum is not finite
  uint32_t packs;
  uint32_t padding;
};
static_assert(sizeof(ResidualForwardArguments) == 32);

// Norms, over rows (norm_grid.h).
struct NormForwardArguments {
  static constexpr const char* kKernel = "norm_forward";
  const void* input;    // [rows, columns]
  const void* carried;  // the same, added to the input before its norm; null: nothing is
  void* sum;            // of both, where something is carried; may be `input`
  const void* weight;   // [columns]
  const void* bias;     // the same; null: none
  void* output;         // [rows, columns]
  float* mean;          // [rows]; null: RMSNorm
  float* rstd;          // [rows]
  int64_t rows;
  uint32_t packs_of_row;
  float eps, weight_plus;  // the latter is added to the weight
  uint32_t warps_of_row;
};
static_assert(sizeof(NormForwardArguments) == 88);

// The input's gradient, and each block's sums of columns (norm_grid.h).
struct NormBackwardArguments {
  static constexpr const char* kKernel = "norm_backward";
  const void* grad_output;  // [rows, columns]
  const void* input;        // the same, as the forward's
  const void* carried;      // the same, added to the gradient; null: nothing is
  const void* weight;       // [columns]
  const float* mean;        // [rows]; null: RMSNorm
  const float* rstd;        // [rows]
  void* grad_input;         // [rows, columns]; may be grad_output
  float* partial;           // [blocks, numbers]
  float* not_finite;        // becomes no number where grad_input is not finite; null: nobody asks
  int64_t rows;
  uint32_t packs_of_row, warps_of_row, sums_in_shared;
  float weight_plus;
};
static_assert(sizeof(NormBackwardArguments) == 96);

// Their sums over the blocks. 32 numbers a block of this one.
struct NormWeightGradientsArguments {
  static constexpr const char* kKernel = "norm_weight_gradients";
  const float* partial;  // [blocks, numbers]
  float* gradients;      // [numbers]: the weight's, then the bias's
  uint32_t blocks, numbers, packs_of_row;
  uint32_t padding;
};
static_assert(sizeof(NormWeightGradientsArguments) == 32);

// Cross entropy of rows of logits, and its gradient by them. One block a row; it takes any whole number of warps.
struct HeadLossArguments {
  static constexpr const char* kKernel = "head_loss";
  // Few rows at once: the second read of a row finds it in the card's cache.
  static constexpr int kBlockThreads = 1024;
  static constexpr unsigned kSharedBytes = kBlockThreads / 32 * 8;  // two numbers a warp
  const void* logits;                                               // [rows, columns]; -inf behind the words
  void* gradient;          // the same, in the kernel's type: scale * (softmax - 1 at the target); may be the logits; null: none
  const int64_t* targets;  // [rows]; of one that is no word the loss is no number
  float* losses;           // [rows]
  int64_t columns;
  uint32_t rows;
  uint32_t words;
  float scale;
  uint32_t wide;  // 1: the logits are float32 whatever the kernel's type; 0: of its type
};
static_assert(sizeof(HeadLossArguments) == 56);

// A step of AdamW over a range of float32 masters, which begins anywhere. The kernel's type is the cast's.
struct AdamWArguments {
  static constexpr const char* kKernel = "adamw";
  static constexpr int kTogether = 4;  // elements of a thread, 16 bytes of float32; of the first, fewer
  float* gradient;
  float* parameter;
  float* exp_avg;
  float* exp_avg_sq;
  void* cast;        // the parameter in the kernel's type; null: it is not asked for
  int64_t elements;  // of each
  float clip;        // a factor of the gradient
  float decay;       // lr * weight_decay
  float beta1, rest1;
  float beta2, rest2;  // rest: 1 - beta, of the float64 one
  float step;          // lr / (1 - beta1^steps)
  float root2;         // sqrt(1 - beta2^steps)
  float eps;
  uint32_t zero;  // 1: the gradient is zero afterwards; 0: it stays
};
static_assert(sizeof(AdamWArguments) == 88);

}  // namespace motley::kernels
