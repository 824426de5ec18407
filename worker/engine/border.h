// Tensors at the borders between this rank's units and other ranks': what was made here and is sent piece by piece, what comes
// piece by piece and is used here. One step's.
//
// Not locked: the program orders who makes, sends, receives and takes a tensor, and every tensor has a place of its own.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/program/program.h"

namespace motley::engine {

class Border {
 public:
  // By unit and microbatch of `program`.
  explicit Border(const Program& program) : program_(program), places_(program.num_units) {
    for (auto& of_unit : places_) of_unit.resize(program.microbatches.size());
  }

  // ---- out: made here ----

  // [samples, seq_len, hidden]
  void Put(int32_t unit, int32_t microbatch, const at::Tensor& whole) {
    places_[unit][microbatch].whole = whole.contiguous();
    places_[unit][microbatch].left = program_.microbatches[microbatch].samples;
  }
  // The samples that `op` sends: contiguous.
  template <typename Op>
  at::Tensor Piece(const Op& op) const {
    return Slice(places_[op.unit][op.microbatch].whole, op);
  }
  // Frees the tensor behind its last piece.
  template <typename Op>
  void Sent(const Op& op) {
    Place& place = places_[op.unit][op.microbatch];
    place.left -= op.samples;
    if (place.left == 0) place.whole = at::Tensor();
  }

  // ---- in: comes from elsewhere ----

  // Where the samples that `op` receives belong. The first piece makes the tensor.
  template <typename Op>
  at::Tensor Room(const Op& op, int64_t seq_len, int64_t hidden, const at::TensorOptions& options);
  // Where what the leader of a tensor-parallel group received belongs.
  at::Tensor Whole(int32_t unit, int32_t microbatch, int64_t seq_len, int64_t hidden, const at::TensorOptions& options);
  // What has come, whole. It is the caller's then.
  at::Tensor Take(int32_t unit, int32_t microbatch) { return std::exchange(places_[unit][microbatch].whole, at::Tensor()); }
  // Another lane takes what comes, too, and neither waits for the other: the leader's broadcast. Before any comes.
  void Share(int32_t unit, int32_t microbatch) { places_[unit][microbatch].is_shared = true; }
  at::Tensor TakeShared(int32_t unit, int32_t microbatch) {
    return std::exchange(places_[unit][microbatch].shared, at::Tensor());
  }

 private:
  struct Place {
    at::Tensor whole;
    int64_t left = 0;  // samples to be sent
    bool is_shared = false;
    at::Tensor shared;  // the same tensor
  };
  template <typename Op>
  at::Tensor Slice(const at::Tensor& whole, const Op& op) const {
    return whole.narrow(0, op.first - program_.microbatches[op.microbatch].first, op.samples);
  }

  const Program& program_;
  std::vector<std::vector<Place>> places_;  // [unit][microbatch]
};

template <typename Op>
at::Tensor Border::Room(const Op& op, int64_t seq_len, int64_t hidden, const at::TensorOptions& options) {
  return Slice(Whole(op.unit, op.microbatch, seq_len, hidden, options), op);
}

inline at::Tensor Border::Whole(int32_t unit, int32_t microbatch, int64_t seq_len, int64_t hidden,
                                const at::TensorOptions& options) {
  Place& place = places_[unit][microbatch];
  if (!place.whole.defined()) {
    place.whole = at::empty({program_.microbatches[microbatch].samples, seq_len, hidden}, options);
    if (place.is_shared) place.shared = place.whole;
  }
  return place.whole;
}

}  // namespace motley::engine
