#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "planner/lowering/rank_passes.h"

namespace motley::planner {
namespace {

class DependencyPass {
 public:
  DependencyPass(const std::vector<int64_t>& computed_when_sent, size_t copies_ahead)
      : computed_when_sent_(computed_when_sent), copies_ahead_(copies_ahead) {}
  std::vector<Instruction> Run(std::vector<Operation> operations) {
    for (auto& of_lane : waited_) of_lane.fill(-1);
    instructions_.reserve(operations.size());
    lanes_.reserve(operations.size());
    for (Operation& op : operations) {
      at_ = static_cast<int32_t>(instructions_.size());
      needs_.clear();
      std::visit([this](const auto& o) { Visit(o); }, op);
      const Lane lane = LaneOf(op);
      instructions_.push_back({std::move(op), Missing(lane)});
      lanes_.push_back(lane);
    }
    return std::move(instructions_);
  }

 private:
  // The newest instruction that did something, by what comes over a border and such, or by buffer or unit.
  template <typename Key>
  using Newest = absl::flat_hash_map<Key, int32_t>;
  class NewestByNumber {
   public:
    int32_t& operator[](int32_t number) {
      if (static_cast<size_t>(number) >= at_.size()) at_.resize(static_cast<size_t>(number) + 1, -1);
      return at_[static_cast<size_t>(number)];
    }
    int32_t Find(int32_t number) const {
      return number >= 0 && static_cast<size_t>(number) < at_.size() ? at_[static_cast<size_t>(number)] : -1;
    }

   private:
    std::vector<int32_t> at_;
  };
  using Boundary = std::pair<int32_t, int32_t>;       // unit, microbatch
  using Border = std::tuple<bool, int32_t, int32_t>;  // backward, first unit behind the border, microbatch

  void Needs(int32_t instruction) { needs_.push_back(instruction); }
  template <typename Key>
  void Needs(const Newest<Key>& newest, const Key& key) {
    if (const auto at = newest.find(key); at != newest.end()) Needs(at->second);
  }
  void Needs(const NewestByNumber& newest, int32_t number) {
    if (const int32_t at = newest.Find(number); at >= 0) Needs(at);
  }

  // What the instruction needs and its lane has not waited for; of each lane the newest stands for all.
  std::vector<int32_t> Missing(Lane lane) {
    std::array<int32_t, kNumLanes>& waited = waited_[static_cast<size_t>(lane)];
    std::array<int32_t, kNumLanes> newest = waited;
    for (const int32_t need : needs_) {
      const Lane other = lanes_[static_cast<size_t>(need)];
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
    Needs(fetched_, op.unit);
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
  void Visit(const ReduceScatter& op) { Reduces(op); }
  void Visit(const AllReduce& op) { Reduces(op); }
  template <typename Op>
  void Reduces(const Op& op) {
    Needs(written_, op.grad);
    reduced_[op.grad] = summed_[op.unit] = at_;
  }

  // ---- compute ----

  template <typename Op>
  void Reads(const Op& op) {
    for (const int32_t buffer : {op.buffer, op.tied_buffer}) Needs(gathered_, buffer);
    Computes();
  }
  template <typename Op>
  void Writes(const Op& op) {
    for (const int32_t buffer : {op.grad, op.tied_grad}) {
      if (buffer < 0) continue;
      Needs(reduced_, buffer);
      written_[buffer] = at_;
    }
    Computes();
  }
  void Computes() {
    if (computed_ != at_) computes_.push_back(at_);
    computed_ = at_;
  }
  void Visit(const Forward& op) {
    Reads(op);
    NeedsSum(op);
    Needs(received_, Border(false, op.unit, op.microbatch));
    // Or over a slow link inputs would gather on the device that are to leave.
    if (offloads_.size() >= copies_ahead_) Needs(offloads_[offloads_.size() - copies_ahead_]);
  }
  void Visit(const Recompute& op) {
    Needs(prefetched_, {std::max(op.unit, 1), op.microbatch});  // the embedding's input stays
    Reads(op);
  }
  void Visit(const Backward& op) {
    Needs(prefetched_, {std::max(op.unit, 1), op.microbatch});  // the embedding's input stays
    Reads(op);
    Writes(op);
    NeedsSum(op);
    backward_ = at_;
    Needs(received_, Border(true, op.unit + op.more_units + 1, op.microbatch));
  }
  void Visit(const BackwardInput& op) {
    Needs(prefetched_, {std::max(op.unit, 1), op.microbatch});  // the embedding's input stays
    Reads(op);
    NeedsSum(op);
    backward_ = at_;
    Needs(received_, Border(true, op.unit + op.more_units + 1, op.microbatch));
  }
  void Visit(const BackwardWeight& op) { Writes(op); }
  // A unit's second segment, of what its ranks have summed between the two.
  template <typename Op>
  void NeedsSum(const Op& op) {
    if (op.segment != UnitSegment::kWhole) Needs(halves_summed_, {op.unit, op.microbatch});
  }
  // The sum behind a unit is as if it had come over the border.
  void Visit(const AllReduceActivation& op) {
    NeedsComputed();
    if (op.segment != UnitSegment::kWhole) {
      halves_summed_[{op.unit, op.microbatch}] = at_;
    } else if (op.of == Exchanged::kGradient) {
      received_[{true, op.unit, op.microbatch}] = at_;
    } else {
      received_[{false, op.unit + 1, op.microbatch}] = at_;
    }
  }

  // ---- transfers and the end of the step: of what was computed last ----

  void Visit(const ReceiveActivation& op) { Receives(Border(false, op.unit, op.microbatch)); }
  void Visit(const ReceiveGradient& op) { Receives(Border(true, op.unit, op.microbatch)); }
  void Receives(const Border& border) {
    const auto computed = num_received_ < computed_when_sent_.size() ? computed_when_sent_[num_received_] : INT64_MAX;
    ++num_received_;
    Comes(border, computed);
  }
  // By their leader to the others of a tensor-parallel unit.
  void Visit(const BroadcastActivation& op) {
    const Border border(op.of == Exchanged::kGradient, op.unit, op.microbatch);
    if (!received_.contains(border)) return Comes(border, INT64_MAX);
    Needs(received_, border);
    received_[border] = at_;
  }
  // Its room is made when it is issued, and on a card nothing else keeps a lane from issuing all that a step receives. So it
  // waits for what was computed before that for which something came the last time but one: while one is used the next may
  // come, and the one after it, so that a slow link need not wait for the computation. It never waits for what is computed
  // after it was sent: its sender sends others, too, and the rank may need what these make of it.
  void Comes(const Border& border, int64_t computed_when_sent) {
    if (computed_ != before_newest_) {
      room_after_ = std::exchange(before_last_, before_newest_);
      before_newest_ = computed_;
    }
    const auto computed = std::min(computed_when_sent, static_cast<int64_t>(computes_.size()));
    const int32_t when_sent = computed > 0 ? computes_[static_cast<size_t>(computed) - 1] : -1;
    if (std::min(room_after_, when_sent) >= 0) Needs(std::min(room_after_, when_sent));
    received_[border] = at_;
  }
  void Visit(const SendActivation& op) { Sends(Border(false, op.unit, op.microbatch)); }
  void Visit(const SendGradient& op) { Sends(Border(true, op.unit, op.microbatch)); }
  void Sends(const Border& border) {
    const auto sum = received_.find(border);  // of what was computed
    sum != received_.end() ? Needs(sum->second) : NeedsComputed();
  }
  void Visit(const ReduceScalars&) {
    NeedsComputed();
    scalars_ = at_;
  }
  // Named blocks may be stepped before the norm is known, once their own sums are there.
  void Visit(const OptimizerStep& op) {
    if (scalars_ >= 0) Needs(scalars_);
    for (int32_t unit = op.first_unit; op.first_unit >= 0 && unit <= op.first_unit + op.more_units; ++unit) Needs(summed_, unit);
    Needs(in_slot_, op.slot);
    if (op.grad >= 0) reduced_[op.grad] = at_;  // its sum was used
    stepped_ = at_;
  }
  void NeedsComputed() {
    if (computed_ >= 0) Needs(computed_);
  }

  // ---- copies ----

  template <typename Op, typename Use>
  static void ForEach(const Op& op, Use use) {
    for (int32_t unit = op.unit; unit <= op.unit + op.more_units; ++unit) {
      for (int32_t m = op.microbatch; m <= op.microbatch + op.more_microbatches; ++m) use(std::pair(unit, m));
    }
  }
  void Visit(const OffloadActivation& op) {
    NeedsComputed();
    offloads_.push_back(at_);
    ForEach(op, [this](const Boundary& boundary) { offloaded_[boundary] = at_; });
  }
  // Into the slot that a backward has left.
  void Visit(const PrefetchActivation& op) {
    if (backward_ >= 0) Needs(backward_);
    ForEach(op, [this](const Boundary& boundary) {
      Needs(offloaded_, boundary);
      prefetched_[boundary] = at_;
    });
  }
  void Visit(const PrefetchParameters& op) {
    Needs(released_, op.buffer);
    fetched_[op.unit] = at_;
  }
  void Visit(const OffloadGradients& op) {
    Needs(summed_, op.unit);
    reduced_[op.grad] = at_;
  }
  void Visit(const PrefetchOptimizer& op) { in_slot_[op.slot] = at_; }
  void Visit(const OffloadOptimizer&) { Needs(stepped_); }

  // No pass writes it yet.
  void Visit(const Broadcast&) {}

  const std::vector<int64_t>& computed_when_sent_;  // by receive
  const size_t copies_ahead_;
  size_t num_received_ = 0;
  std::vector<int32_t> computes_, offloads_;  // instructions
  // What was computed before what came over borders for the newest pass, the last one and the last but one.
  int32_t before_newest_ = -1, before_last_ = -1, room_after_ = -1;
  std::vector<Instruction> instructions_;
  std::vector<Lane> lanes_;                                       // by instruction
  std::array<std::array<int32_t, kNumLanes>, kNumLanes> waited_;  // [lane][other]: newest instruction that it comes after
  int32_t at_ = 0, computed_ = -1, backward_ = -1, stepped_ = -1, scalars_ = -1;
  std::vector<int32_t> needs_;          // of the instruction
  NewestByNumber gathered_, released_;  // by parameter buffer
  NewestByNumber written_, reduced_;    // by gradient buffer
  NewestByNumber summed_;               // by unit
  NewestByNumber fetched_;              // likewise: parameters
  NewestByNumber in_slot_;              // by slot: an optimizer
  Newest<Boundary> offloaded_, prefetched_, halves_summed_;
  Newest<Border> received_;
};

}  // namespace

std::vector<Instruction> WithDependencies(RankOperations rank) {
  return DependencyPass(rank.computed_when_sent, rank.copies_ahead).Run(std::move(rank.operations));
}

}  // namespace motley::planner
