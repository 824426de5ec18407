// How many kernels a card is given for an operator of ATen that a layer calls: libtorch 2.11, half types. From ATen's
// sources, partly of other versions, and not measured: a profiler on a card has the last word. An operator with kernels stands
// for all that it calls itself; of others the operators that they call count.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace motley::engine {

struct KernelRow {
  std::string_view op;
  int kernels;
};

inline constexpr std::array kKernelTable = {
    // They say how memory is to be read, ask for some, or call others.
    KernelRow{"aten::as_strided", 0},
    KernelRow{"aten::empty", 0},
    KernelRow{"aten::empty_like", 0},
    KernelRow{"aten::empty_strided", 0},
    KernelRow{"aten::flatten", 0},
    KernelRow{"aten::narrow", 0},
    KernelRow{"aten::reshape", 0},
    KernelRow{"aten::select", 0},
    KernelRow{"aten::slice", 0},
    KernelRow{"aten::t", 0},
    KernelRow{"aten::to", 0},
    KernelRow{"aten::_to_copy", 0},
    KernelRow{"aten::transpose", 0},
    KernelRow{"aten::unflatten", 0},
    KernelRow{"aten::unsqueeze", 0},
    KernelRow{"aten::view", 0},
    KernelRow{"aten::_fused_sdp_choice", 0},  // asks for sizes and strides

    // One pass over the elements.
    KernelRow{"aten::add_", 1},
    KernelRow{"aten::addcmul_", 1},
    KernelRow{"aten::copy_", 1},
    KernelRow{"aten::gelu", 1},
    KernelRow{"aten::gelu_backward", 1},
    KernelRow{"aten::mul", 1},
    KernelRow{"aten::mul_", 1},
    KernelRow{"aten::silu", 1},
    KernelRow{"aten::silu_backward", 1},

    // One kernel each. Not counted: the few bytes that are set to zero where a sum spans several blocks.
    KernelRow{"aten::sum", 1},

    // Up to 128 parts in one, as long as the whole has less than 2^31 elements.
    KernelRow{"aten::cat", 1},

    // cuBLAS; where it splits a sum over k, one more that is not counted. A bias of one dimension goes with the product.
    KernelRow{"aten::addmm", 1},
    KernelRow{"aten::mm", 1},

    // Rows that are aligned to four elements; others take two.
    KernelRow{"aten::native_layer_norm", 1},
    // For the input, and for both weights. More than 65,536 rows of few columns take two more.
    KernelRow{"aten::native_layer_norm_backward", 2},

    // The same kernels as the layer norm's, without means.
    KernelRow{"aten::_fused_rms_norm", 1},
    KernelRow{"aten::_fused_rms_norm_backward", 2},

    // One kernel where heads and samples fill the card; long sequences of few heads are split and put together.
    KernelRow{"aten::_scaled_dot_product_flash_attention", 1},
    // The sums over rows of gradient times output, the gradients, and the cast of q's, which is summed in float32. Where heads
    // share keys and values, two more sum up those of a group.
    KernelRow{"aten::_scaled_dot_product_flash_attention_backward", 3},
    // The same of documents one after the other, of all in one.
    KernelRow{"aten::_flash_attention_forward", 1},
    KernelRow{"aten::_flash_attention_backward", 3},
};

inline std::optional<int> KernelsOf(std::string_view op) {
  for (const KernelRow& row : kKernelTable) {
    if (row.op == op) return row.kernels;
  }
  return std::nullopt;
}

}  // namespace motley::engine
