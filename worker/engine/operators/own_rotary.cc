#include "worker/engine/operators/own_rotary.h"

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/operators/own_kernels.h"

namespace motley::engine {
namespace {

uint32_t As32(int64_t number) { return static_cast<uint32_t>(number); }
// Of the tables, which have as many rows as a sample or as all samples together.
uint32_t RowsOf(const RotaryTables& tables) { return As32(tables.cos.numel() / tables.half()); }

// Of the first halves of so many heads.
Packs PacksOfHalves(int64_t heads, const RotaryTables& tables) {
  const Packs packs = PacksOf(tables.cos);
  return {As32(heads) * packs.of_row, packs.of_row};
}

kernels::HeadsPlace PlaceOf(const at::Tensor& heads) {
  return {heads.const_data_ptr(), heads.stride(0), heads.stride(1), heads.stride(2)};
}

}  // namespace

void OwnRotary(const KernelLauncher& kernels, const RotaryTables& tables, double sign, at::Tensor& rows, int64_t heads) {
  const int64_t columns = rows.size(-1);
  const Packs packs = PacksOfHalves(rows.numel() / columns * heads, tables);
  const kernels::RotaryArguments arguments = {.rows = rows.mutable_data_ptr(),
                                              .cos = tables.cos.const_data_ptr(),
                                              .sin = tables.sin.const_data_ptr(),
                                              .row_stride = columns,
                                              .packs = packs.all,
                                              .packs_of_half = packs.of_row,
                                              .heads = As32(heads),
                                              .table_rows = RowsOf(tables),
                                              .sign = static_cast<float>(sign),
                                              .unused = 0};
  LaunchOwn(kernels, rows, packs.blocks(), arguments);
}

bool ArePackedByKernels(const KernelLauncher* kernels, const AttentionHeads& grads, const RotaryTables& tables) {
  return TakenByKernels(kernels, {tables.cos, tables.sin}, tables.half()) &&
         RowsTakenByKernels(kernels, {tables.cos, grads.q, grads.k, grads.v}, tables.half());
}

at::Tensor OwnPackHeads(const KernelLauncher& kernels, const AttentionHeads& grads, const RotaryTables& tables) {
  const int64_t samples = grads.q.size(0), seq_len = grads.q.size(2), heads = grads.q.size(1), kv_heads = grads.k.size(1);
  const int64_t all = heads + 2 * kv_heads;
  at::Tensor output = at::empty({samples, seq_len, all * grads.q.size(3)}, grads.q.options());
  const Packs packs = PacksOfHalves(samples * seq_len * all, tables);
  const kernels::PackHeadsArguments arguments = {.q = PlaceOf(grads.q),
                                                 .k = PlaceOf(grads.k),
                                                 .v = PlaceOf(grads.v),
                                                 .output = output.mutable_data_ptr(),
                                                 .cos = tables.cos.const_data_ptr(),
                                                 .sin = tables.sin.const_data_ptr(),
                                                 .packs = packs.all,
                                                 .packs_of_half = packs.of_row,
                                                 .heads = As32(heads),
                                                 .kv_heads = As32(kv_heads),
                                                 .seq_len = As32(seq_len),
                                                 .table_rows = RowsOf(tables)};
  LaunchOwn(kernels, output, packs.blocks(), arguments);
  return output;
}

}  // namespace motley::engine
