#include "tests/worker/engine/kernels/host_kernels.h"

#include <map>

#include "tests/worker/engine/kernels/emulated_card.h"
#include "worker/engine/kernels/adamw.h"
#include "worker/engine/kernels/bias_gradient.h"
#include "worker/engine/kernels/gated.h"
#include "worker/engine/kernels/head_loss.h"
#include "worker/engine/kernels/kernel_table.h"
#include "worker/engine/kernels/norm.h"
#include "worker/engine/kernels/rotary.h"

namespace motley::kernels {
namespace {

using HostKernels = std::map<std::string, HostKernel>;

template <typename Arguments>
void AddOne(HostKernels& all, const char* type, void (*kernel)(Arguments)) {
  all[std::string(Arguments::kKernel) + " " + type] = {
      [kernel](const void* arguments) { kernel(*static_cast<const Arguments*>(arguments)); }, sizeof(Arguments),
      BlockThreadsOf<Arguments>(), BlockThreadsOf<Arguments>() != kThreads};
}
template <typename Arguments>
void Add(HostKernels& all, void (*bfloat16)(Arguments), void (*float16)(Arguments), void (*float32)(Arguments)) {
  AddOne(all, "bfloat16", bfloat16);
  AddOne(all, "float16", float16);
  AddOne(all, "float32", float32);
}

HostKernels Make() {
  HostKernels all;
  Add(all, SwiGluForward<BFloat16Bits>, SwiGluForward<Float16Bits>, SwiGluForward<float>);
  Add(all, SwiGluBackward<BFloat16Bits>, SwiGluBackward<Float16Bits>, SwiGluBackward<float>);
  Add(all, GeGluForward<BFloat16Bits>, GeGluForward<Float16Bits>, GeGluForward<float>);
  Add(all, GeGluBackward<BFloat16Bits>, GeGluBackward<Float16Bits>, GeGluBackward<float>);
  Add(all, Rotary<BFloat16Bits>, Rotary<Float16Bits>, Rotary<float>);
  Add(all, PackHeads<BFloat16Bits>, PackHeads<Float16Bits>, PackHeads<float>);
  Add(all, BiasGradient<BFloat16Bits>, BiasGradient<Float16Bits>, BiasGradient<float>);
  Add(all, ResidualForward<BFloat16Bits>, ResidualForward<Float16Bits>, ResidualForward<float>);
  Add(all, NormForward<BFloat16Bits>, NormForward<Float16Bits>, NormForward<float>);
  Add(all, NormBackward<BFloat16Bits>, NormBackward<Float16Bits>, NormBackward<float>);
  Add(all, NormWeightGradients<BFloat16Bits>, NormWeightGradients<Float16Bits>, NormWeightGradients<float>);
  Add(all, HeadLoss<BFloat16Bits>, HeadLoss<Float16Bits>, HeadLoss<float>);
  Add(all, AdamW<BFloat16Bits>, AdamW<Float16Bits>, AdamW<float>);
  return all;
}

}  // namespace

const HostKernel* FindHostKernel(const std::string& name) {
  static const HostKernels kAll = Make();
  const auto found = kAll.find(name);
  return found == kAll.end() ? nullptr : &found->second;
}

}  // namespace motley::kernels
