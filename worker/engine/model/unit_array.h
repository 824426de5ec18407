// A flat array that holds a unit of the model, and its views as named tensors. They are made once, by the first pass over the
// array: to find a tensor by name and to view it is host work before every launch. Of one thread and one model.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>

#include "worker/engine/model/unit_view.h"

namespace motley::engine {

// Its views are of its own memory and go with it: another array in its place has views of its own.
class UnitArray {
 public:
  UnitArray() = default;
  // One-dimensional. Implicit, so that who passes over an array once hands in the tensor.
  UnitArray(at::Tensor flat) : flat_(std::move(flat)) {}  // NOLINT(google-explicit-constructor)

  bool defined() const { return flat_.defined(); }
  // May be called from any thread.
  const at::Tensor& flat() const { return flat_; }

  // A buffer may hold one kind of unit after another. Each is made by the model (UnitModel) that passes over it.
  struct Views {
    std::optional<EmbeddingTensors> embedding;
    std::optional<LayerTensors> layer;
    std::optional<HeadTensors> head;
  };
  Views& views() const { return views_; }

 private:
  at::Tensor flat_;
  mutable Views views_;
};

}  // namespace motley::engine
