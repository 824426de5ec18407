#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "planner/lowering/rank_passes.h"

namespace motley::planner {
namespace {

class DependencyPass {
 public:
  std::vector<Instruction> Run(std::vector<Operation> operations) {
    for (auto& of_lane : waited_) of_lane.fill(-1);
    for (Operation& op : operations) {
      at_ = static_cast<int32_t>(instructions_.size());
      needs_.clear();
      std::visit([this](const auto& o) { Visit(o); }, op);
      std::vector<int32_t> after = Missing(LaneOf(op));
      instructions_.push_back({std::move(op), std::move(after)});
    }
    return std::move(instructions_);
  }

 private:
  // The newest instruction that did something, by buffer or by what comes over a border.
  template <typename Key>
  using Newest = std::map<Key, int32_t>;
  using Border = std::tuple<bool, int32_t, int32_t>;  // backward, first unit behind the border, microbatch

  void Needs(int32_t instruction) { needs_.push_back(instruction); }
  template <typename Key>
  void Needs(const Newest<Key>& newest, const Key& key) {
    if (const auto at = newest.find(key); at != newest.end()) Needs(at->second);
  }

  // What the instruction needs and its lane has not waited for; of each lane the newest stands for all.
  std::vector<int32_t> Missing(Lane lane) {
    std::array<int32_t, kNumLanes>& waited = waited_[static_cast<size_t>(lane)];
    std::array<int32_t, kNumLanes> newest = waited;
    for (const int32_t need : needs_) {
      const Lane other = LaneOf(instructions_[need].op);
      if (other != lane) newest[static_cast<size_t>(other)] = std::max(newest[static_cast<size_t>(other)], need);
    }
    std::vector<int32_t> after;
    for (size_t other = 0; other < kNumLanes; ++other) {
      if (newest[other] > waited[other]) after.push_back(waited[other] = newest[other]);
    }
    std::sort(after.begin(), after.end());
    return after;
  }

  // ---- parameters and gradients ----

  void Visit(const Gather& op) {
    Needs(released_, op.buffer);
    gathered_[op.buffer] = at_;
  }
  void Visit(const Release& op) {
    Needs(gathered_, op.buffer);
    released_[op.buffer] = at_;
  }
  void Visit(const ZeroGrad& op) {
    Needs(reduced_, op.grad);
    written_[op.grad] = at_;
  }
  void Visit(const ReduceScatter& op) {
    Needs(written_, op.grad);
    reduced_[op.grad] = at_;
  }

  // ---- compute ----

  template <typename Op>
  void Reads(const Op& op) {
    for (const int32_t buffer : {op.buffer, op.tied_buffer}) Needs(gathered_, buffer);
    computed_ = at_;
  }
  template <typename Op>
  void Writes(const Op& op) {
    for (const int32_t buffer : {op.grad, op.tied_grad}) {
      Needs(reduced_, buffer);
      written_[buffer] = at_;
    }
    computed_ = at_;
  }
  void Visit(const Forward& op) {
    Reads(op);
    Needs(received_, Border(false, op.unit, op.microbatch));
  }
  void Visit(const Recompute& op) { Reads(op); }
  void Visit(const Backward& op) {
    Reads(op);
    Writes(op);
    Needs(received_, Border(true, op.unit + 1, op.microbatch));
  }
  void Visit(const BackwardInput& op) {
    Reads(op);
    Needs(received_, Border(true, op.unit + 1, op.microbatch));
  }
  void Visit(const BackwardWeight& op) { Writes(op); }

  // ---- transfers and the end of the step: of what was computed last ----

  void Visit(const ReceiveActivation& op) { received_[{false, op.unit, op.microbatch}] = at_; }
  void Visit(const ReceiveGradient& op) { received_[{true, op.unit, op.microbatch}] = at_; }
  void Visit(const BroadcastActivation& op) {
    const Border border(op.of == Exchanged::kGradient, op.unit, op.microbatch);
    Needs(received_, border);
    received_[border] = at_;
  }
  void Visit(const SendActivation&) { NeedsComputed(); }
  void Visit(const SendGradient&) { NeedsComputed(); }
  void Visit(const ReduceScalars&) {
    NeedsComputed();
    scalars_ = at_;
  }
  void Visit(const OptimizerStep&) { Needs(scalars_); }
  void NeedsComputed() {
    if (computed_ >= 0) Needs(computed_);
  }

  // No pass writes these yet.
  void Visit(const Broadcast&) {}
  void Visit(const AllReduce&) {}
  void Visit(const AllReduceActivation&) {}
  void Visit(const OffloadActivation&) {}
  void Visit(const PrefetchActivation&) {}
  void Visit(const PrefetchState&) {}
  void Visit(const OffloadState&) {}

  std::vector<Instruction> instructions_;
  std::array<std::array<int32_t, kNumLanes>, kNumLanes> waited_;  // [lane][other]: newest instruction that it comes after
  int32_t at_ = 0, computed_ = -1, scalars_ = -1;
  std::vector<int32_t> needs_;           // of the instruction
  Newest<int32_t> gathered_, released_;  // by parameter buffer
  Newest<int32_t> written_, reduced_;    // by gradient buffer
  Newest<Border> received_;
};

}  // namespace

std::vector<Instruction> WithDependencies(std::vector<Operation> operations) {
  return DependencyPass().Run(std::move(operations));
}

}  // namespace motley::planner
