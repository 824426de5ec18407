// What the operators of a layer work on in one pass: the layer's tensors by name and their gradients, as far as they exist at the
// moment. Not thread-safe.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/model/layer_values.h"
#include "common/model/model.h"
#include "worker/engine/model/unit_view.h"
#include "worker/engine/operators/attention.h"
#include "worker/engine/operators/rotary.h"

namespace motley::engine {

class FiniteMark;
class KernelLauncher;

inline at::Tensor AsRows(const at::Tensor& t) { return t.reshape({-1, t.size(-1)}); }

struct LayerFrame {
  const ModelShape& shape;
  const FamilyTraits& traits;
  const RotaryTables& rotary;  // of the samples' positions; none where its layer does not turn heads
  int64_t samples = 0, seq_len = 0;
  bool adds_carried = true;                 // residuals; else who sums up a group's terms adds them behind the sum
  const Borders* borders = nullptr;         // null: each sample is one document
  AttentionForm attention;                  // of its layer
  const KernelLauncher* kernels = nullptr;  // the device's own; null: none
  FiniteMark* mark = nullptr;               // of what the pass makes; null: nobody asks
  LayerTensors weights, weight_gradients;   // as far as the pass needs them
  // By LayerValue; undefined: not there. Each [samples * seq_len, columns].
  std::vector<at::Tensor> values = std::vector<at::Tensor>(kNumLayerValues);
  std::vector<at::Tensor> gradients = std::vector<at::Tensor>(kNumLayerValues);

  at::Tensor& Value(LayerValue value) { return values[static_cast<size_t>(value)]; }
  at::Tensor& Gradient(LayerValue value) { return gradients[static_cast<size_t>(value)]; }
  // Of a value that several operators read. Takes `part` and may change it; never what was there, which others may hold.
  void AddGradient(LayerValue value, at::Tensor part) {
    at::Tensor& sum = Gradient(value);
    sum = sum.defined() ? part.add_(sum) : std::move(part);
  }
  HeadLayout heads() const { return {shape.num_heads, shape.num_kv_heads, shape.head_dim}; }
  // [samples, seq_len, columns], a view.
  at::Tensor BySample(const at::Tensor& rows) const { return rows.view({samples, seq_len, rows.size(-1)}); }
};

}  // namespace motley::engine
