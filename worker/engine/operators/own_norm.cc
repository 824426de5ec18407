#include "worker/engine/operators/own_norm.h"

#include <vector>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/kernels/norm_grid.h"
#include "worker/engine/operators/finite_check.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {
namespace {

bool IsCentred(NormKind kind) { return kind == NormKind::kLayerNorm; }
float WeightPlus(NormKind kind) { return kind == NormKind::kRmsNormPlusOne ? 1.0f : 0.0f; }

const void* DataOf(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }
// Of float32 tensors. ATen's own typed ones refuse a device without memory, on which tests count launches.
const float* NumbersOf(const at::Tensor& tensor) { return static_cast<const float*>(DataOf(tensor)); }
float* RoomOf(const at::Tensor& tensor) { return tensor.defined() ? static_cast<float*>(tensor.mutable_data_ptr()) : nullptr; }

// A number for each row.
at::Tensor RoomForRows(const at::Tensor& input) {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() = 1;
  return at::empty(sizes, input.options().dtype(at::kFloat));
}
bool AreNumbersOfRows(const at::Tensor& stat, int64_t rows) {
  return stat.scalar_type() == at::kFloat && stat.is_contiguous() && stat.numel() == rows;
}

}  // namespace

bool TakesNorm(const KernelLauncher* kernels, const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
               const at::Tensor& carried) {
  return kernels != nullptr &&
         TakenByKernels(kernels, {input, weight, bias.defined() ? bias : weight, carried.defined() ? carried : input},
                        input.size(-1));
}

bool TakesNormBackward(const KernelLauncher* kernels, const at::Tensor& grad_output, const at::Tensor& input,
                       const at::Tensor& weight, const NormStats& stats, const at::Tensor& carried) {
  if (kernels == nullptr ||
      !TakenByKernels(kernels, {grad_output, input, weight, carried.defined() ? carried : input}, input.size(-1)))
    return false;
  const int64_t rows = input.numel() / input.size(-1);
  return AreNumbersOfRows(stats.rstd, rows) && (!stats.mean.defined() || AreNumbersOfRows(stats.mean, rows));
}

at::Tensor OwnNormForward(const KernelLauncher& kernels, NormKind kind, const at::Tensor& input, const at::Tensor& weight,
                          const at::Tensor& bias, double eps, NormStats& stats, const at::Tensor& carried) {
  const int64_t rows = input.numel() / input.size(-1);
  at::Tensor output = at::empty_like(input, at::MemoryFormat::Contiguous);
  stats = {IsCentred(kind) ? RoomForRows(input) : at::Tensor(), RoomForRows(input)};
  const kernels::NormForwardGrid grid =
      kernels::GridOfNormForward(rows, input.size(-1), static_cast<int64_t>(input.element_size()));
  const kernels::NormForwardArguments arguments = {.input = input.const_data_ptr(),
                                                   .carried = DataOf(carried),
                                                   .sum = carried.defined() ? input.mutable_data_ptr() : nullptr,
                                                   .weight = weight.const_data_ptr(),
                                                   .bias = DataOf(IsCentred(kind) ? bias : at::Tensor()),
                                                   .output = output.mutable_data_ptr(),
                                                   .mean = RoomOf(stats.mean),
                                                   .rstd = RoomOf(stats.rstd),
                                                   .rows = rows,
                                                   .packs_of_row = grid.packs_of_row,
                                                   .eps = static_cast<float>(eps),
                                                   .weight_plus = WeightPlus(kind),
                                                   .warps_of_row = grid.warps_of_row};
  LaunchOwn(kernels, input, grid.blocks, arguments, kernels::NormForwardGrid::kSharedBytes);
  return output;
}

NormGradients OwnNormBackward(const KernelLauncher& kernels, NormKind kind, const at::Tensor& grad_output,
                              const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const NormStats& stats,
                              const at::Tensor& carried, FiniteMark* mark) {
  const int64_t columns = input.size(-1), rows = input.numel() / columns;
  const kernels::NormBackwardGrid grid =
      kernels::GridOfNormBackward(rows, columns, static_cast<int64_t>(input.element_size()), IsCentred(kind));
  at::Tensor grad_input = at::empty_like(input, at::MemoryFormat::Contiguous);
  const auto numbers = input.options().dtype(at::kFloat);
  const at::Tensor partial = at::empty({grid.blocks, grid.numbers}, numbers), sums = at::empty({grid.numbers}, numbers);
  const kernels::NormBackwardArguments of_rows = {.grad_output = grad_output.const_data_ptr(),
                                                  .input = input.const_data_ptr(),
                                                  .carried = DataOf(carried),
                                                  .weight = weight.const_data_ptr(),
                                                  .mean = IsCentred(kind) ? NumbersOf(stats.mean) : nullptr,
                                                  .rstd = NumbersOf(stats.rstd),
                                                  .grad_input = grad_input.mutable_data_ptr(),
                                                  .partial = RoomOf(partial),
                                                  .not_finite = mark != nullptr && mark->asks() ? mark->Take() : nullptr,
                                                  .rows = rows,
                                                  .packs_of_row = grid.packs_of_row,
                                                  .warps_of_row = grid.warps_of_row,
                                                  .sums_in_shared = grid.sums_in_shared,
                                                  .weight_plus = WeightPlus(kind)};
  LaunchOwn(kernels, input, grid.blocks, of_rows, grid.shared_bytes);
  const kernels::NormWeightGradientsArguments of_blocks = {.partial = NumbersOf(partial),
                                                           .gradients = RoomOf(sums),
                                                           .blocks = grid.blocks,
                                                           .numbers = grid.numbers,
                                                           .packs_of_row = grid.packs_of_row,
                                                           .padding = 0};
  LaunchOwn(kernels, input, grid.blocks_of_sums(), of_blocks, kernels::NormBackwardGrid::kSharedBytesOfSums);
  return {grad_input, sums.narrow(0, 0, columns),
          IsCentred(kind) && bias.defined() ? sums.narrow(0, columns, columns) : at::Tensor()};
}

}  // namespace motley::engine
