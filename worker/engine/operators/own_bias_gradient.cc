#include "worker/engine/operators/own_bias_gradient.h"

#include <algorithm>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {
namespace {

// Of a part, whose sums are made by one block for each 128 bytes of columns: few enough that a narrow gradient has blocks for a
// whole card, and so many that parts' sums are a hundredth of what is read.
constexpr int64_t kRowsOfPart = 256;

void Launch(const KernelLauncher& kernels, const at::Tensor& like, kernels::BiasGradientArguments arguments,
            int64_t element_bytes) {
  const auto columns = static_cast<unsigned>(kernels::kSumPacks * kernels::kPackBytes / element_bytes);
  const unsigned parts = (arguments.rows + arguments.rows_of_part - 1) / arguments.rows_of_part;
  const auto shared_bytes = static_cast<unsigned>(kernels::kSumRows * columns * sizeof(float));
  LaunchOwn(kernels, like, parts * ((arguments.columns + columns - 1) / columns), arguments, shared_bytes);
}

}  // namespace

void OwnAddSums(const KernelLauncher& kernels, const at::Tensor& rows, at::Tensor& sums) {
  const int64_t count = rows.size(0), columns = rows.size(1), parts = (count + kRowsOfPart - 1) / kRowsOfPart;
  kernels::BiasGradientArguments arguments = {.input = rows.const_data_ptr(),
                                              .output = static_cast<float*>(sums.mutable_data_ptr()),
                                              .rows = static_cast<uint32_t>(count),
                                              .columns = static_cast<uint32_t>(columns),
                                              .rows_of_part = static_cast<uint32_t>(std::min(count, kRowsOfPart)),
                                              .of_sums = 0,
                                              .adds = 1,
                                              .unused = 0};
  if (parts == 1) return Launch(kernels, rows, arguments, rows.element_size());
  const at::Tensor of_parts = at::empty({parts, columns}, sums.options());
  arguments.output = static_cast<float*>(of_parts.mutable_data_ptr());
  arguments.adds = 0;
  Launch(kernels, rows, arguments, rows.element_size());
  arguments.input = of_parts.const_data_ptr();
  arguments.output = static_cast<float*>(sums.mutable_data_ptr());
  arguments.rows = arguments.rows_of_part = static_cast<uint32_t>(parts);
  arguments.of_sums = arguments.adds = 1;
  Launch(kernels, rows, arguments, sizeof(float));
}

}  // namespace motley::engine
