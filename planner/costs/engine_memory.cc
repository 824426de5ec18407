#include "planner/costs/engine_memory.h"

#include <algorithm>
#include <limits>

#include "common/program/host_slots.h"
#include "planner/costs/engine_state.h"

namespace motley::planner {
namespace {

constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
// What the ranks of a tensor-parallel unit have summed between two segments of a layer stays.
constexpr OpSet kSummed = OpSet().With(Op::kAttnOut);
constexpr UnitKind kEmbeddingUnit = UnitKind::kEmbedding, kLayerUnit = UnitKind::kLayer, kHeadUnit = UnitKind::kHead;

// Where the pass of a microbatch begins: of the rank's samples those of microbatches whose backward is done, those that were
// forward and still have theirs before them, the microbatch's own; what neighbours have handed over for later ones. Where a
// backward comes in halves it is the first one, and for the second one wait so many samples x layers.
struct Turn {
  int64_t done = 0, left = 0, own = 0;
  int64_t waiting = 0;
  int64_t inputs = 0, gradients = 0;
};

// Activations at one moment.
struct At {
  int64_t boundaries = 0, saved = 0, workspace = 0;
  int64_t total() const { return boundaries + saved + workspace; }
};

// For which inputs of layers that come from the host have room. `largest`: of the rank's microbatches.
int64_t SlotSamples(const RankDuty& duty, int64_t largest) {
  return duty.offload.activations && duty.layers > 0 ? (duty.prefetch + 1) * largest : 0;
}

// The moments that can be the peak, of the backward of one microbatch: at the head, at the last layer, at the embedding.
class EngineActivations {
 public:
  // `largest`: of the rank's microbatches.
  EngineActivations(const Costs& costs, const RankDuty& duty, int64_t largest)
      : costs_(costs),
        duty_(duty),
        slots_(SlotSamples(duty, largest)),
        recompute_(duty.tp_share < 1 ? duty.recompute.Without(kSummed) : duty.recompute),
        by_unit_(GathersByUnit(duty)),
        splits_(TraitsOf(duty.schedule).splits_backward),
        keeps_all_(TraitsOf(duty.schedule).keeps_all),
        kept_of_layer_(costs.SavedOfSample(duty.kind, kLayerUnit, recompute_, duty.tp_share)),
        saved_of_layer_(costs.SavedOfSample(duty.kind, kLayerUnit, OpSet::None(), duty.tp_share)),
        saved_of_head_(duty.head ? costs.SavedOfSample(duty.kind, kHeadUnit, OpSet::None(), duty.tp_share) : 0) {}

  At Peak(const Turn& turn, int64_t most_layer_samples) const {
    At peak;
    const auto take = [&](const At& other) {
      if (other.total() > peak.total()) peak = other;
    };
    // What is through with a unit leaves nothing of it; through with a ministage, where all pass one before the next.
    const int64_t all = turn.done + turn.left;
    const int64_t last_ministage = duty_.ministages > 1 ? duty_.largest_ministage : duty_.layers;
    const int64_t freed = keeps_all_ ? (by_unit_ ? 1 : last_ministage) * turn.done : 0;
    const int64_t passed = std::min(most_layer_samples, keeps_all_ ? duty_.layers * all : duty_.layers * turn.left);
    const int64_t at_head = duty_.head ? turn.left : 0;
    // Between units of one stage lie the gradients of those that are through.
    const bool gradients_stay = by_unit_ || (keeps_all_ && duty_.ministages > 1 && duty_.num_stages == 1);
    const int64_t gradients = gradients_stay ? turn.done : 0;
    const int64_t put_off = Waiting(turn.waiting);
    if (duty_.head) {
      const int64_t layers = by_unit_ ? passed : passed - freed;
      take({Boundary(InputsAtHead(layers, turn) + turn.left + gradients + turn.own + turn.inputs),
            Layers(layers) + Head(at_head) + put_off, Workspace(kHeadUnit, turn.own)});
    }
    if (duty_.layers > 0) {
      const int64_t layers = passed - freed;
      const int64_t waiting = by_unit_ ? turn.left - turn.own : duty_.head ? turn.left - turn.own : turn.gradients;
      const int64_t again = Costs::SavedBytesOf(saved_of_layer_, static_cast<double>(turn.own)) - Layers(turn.own);
      const int64_t head_saved = by_unit_ || !duty_.head ? 0 : Head(turn.left - turn.own);
      take({Boundary(Inputs(layers) + gradients + waiting + 2 * turn.own + turn.inputs),
            Layers(layers) + again + head_saved + put_off, Workspace(kLayerUnit, turn.own)});
      // At the first layer, where all the others of the microbatch wait already.
      if (splits_) {
        const int64_t through = (last_ministage - 1) * turn.own, first = std::max<int64_t>(0, layers - through);
        take({Boundary(Inputs(first) + waiting + 2 * turn.own + turn.inputs),
              Layers(first) + again + head_saved + Waiting(turn.waiting + through), Workspace(kLayerUnit, turn.own)});
      }
    }
    if (duty_.embedding) {
      At end = AtEmbedding(turn, passed);
      if (splits_) end.saved += Waiting(turn.waiting + last_ministage * turn.own);
      take(end);
    }
    peak.boundaries += Leaving(turn);
    return peak;
  }
  // The head's forward: where it makes logits, they are the largest temporary of a forward. `left`: with the microbatch's own.
  At Forward(const Turn& turn, int64_t all) const {
    const int64_t layers = duty_.layers * (by_unit_ ? all : turn.left), inputs = by_unit_ ? all : turn.left;
    return {Boundary(InputsAtHead(layers, turn) + inputs) + Leaving(turn),
            Layers(layers) + Head(turn.left) + Waiting(turn.waiting), duty_.tp_share < 1 ? Workspace(kHeadUnit, turn.own) : 0};
  }

 private:
  At AtEmbedding(const Turn& turn, int64_t passed) const {
    if (by_unit_) return {Boundary(turn.left + slots_), 0, Workspace(kEmbeddingUnit, turn.own)};
    const int64_t others = turn.left - turn.own, layers = duty_.ministages > 1 ? 0 : std::min(passed, duty_.layers * others);
    const int64_t at_head = duty_.head && duty_.ministages == 1 ? others : 0;
    return {Boundary(Inputs(layers) + at_head + turn.own), Layers(layers) + Head(at_head), Workspace(kEmbeddingUnit, turn.own)};
  }

  // Of layers' inputs, of so many samples x layers, those that are on the device: without slots all. Where backwards follow their
  // forwards soon, some stay beside the slots (lowering/copy_pass.cc).
  int64_t Inputs(int64_t layers) const {
    if (slots_ == 0) return layers;
    return std::max(slots_, std::min(layers, keeps_all_ ? slots_ : 2 * slots_));
  }
  // The head waits for nothing that comes from the host, behind which all would have left.
  int64_t InputsAtHead(int64_t layers, const Turn& turn) const {
    if (slots_ == 0) return layers;
    return std::max(slots_, std::min(layers, (keeps_all_ ? slots_ : 2 * slots_) + (duty_.prefetch + 1) * turn.own));
  }
  // The gradient that was handed over last, until something else is.
  int64_t Leaving(const Turn& turn) const { return duty_.num_stages > 1 && !duty_.embedding ? Boundary(turn.own) : 0; }
  int64_t Boundary(int64_t samples) const { return costs_.BoundaryBytes(static_cast<double>(samples)); }
  int64_t Layers(int64_t samples) const { return Costs::SavedBytesOf(kept_of_layer_, static_cast<double>(samples)); }
  // No samples where there is no head.
  int64_t Head(int64_t samples) const {
    const auto kept = static_cast<double>(samples);
    return Costs::SavedBytesOf(saved_of_head_, kept) + (duty_.tp_share < 1 ? costs_.RowBytes(kept) : 0);
  }
  // What stays of a layer between the halves of its backward.
  int64_t Waiting(int64_t samples) const {
    return samples > 0 ? costs_.WaitingBytes(duty_.kind, kLayerUnit, static_cast<double>(samples), duty_.tp_share) : 0;
  }
  int64_t Workspace(UnitKind unit, int64_t samples) const {
    return costs_.WorkspaceBytes(duty_.kind, unit, static_cast<double>(samples), duty_.tp_share);
  }

  const Costs& costs_;
  const RankDuty& duty_;
  const int64_t slots_;                                          // samples for which inputs have room that come from the host
  const OpSet recompute_;                                        // of what frees something
  const bool by_unit_;                                           // all microbatches pass a unit before the next
  const bool splits_;                                            // a backward comes in halves
  const bool keeps_all_;                                         // all forwards come before the first backward
  const double kept_of_layer_, saved_of_layer_, saved_of_head_;  // of a sample; of a layer also what is recomputed
};

// Whether a turn can be the peak beside those that were looked at: more of nothing than before is none.
class Candidates {
 public:
  bool Take(const Turn& turn) {
    if (turn.left <= most_left_ && turn.own <= most_own_ && turn.waiting <= most_waiting_) return false;
    most_left_ = std::max(most_left_, turn.left);
    most_waiting_ = std::max(most_waiting_, turn.waiting);
    most_own_ = std::max(most_own_, turn.own);
    return true;
  }

 private:
  int64_t most_left_ = -1, most_own_ = -1, most_waiting_ = -1;
};

// What the neighbours may have handed over at a backward: what is computed in one piece there comes at once. `next`: the first
// microbatch that has not been forward.
void AddHandedOver(const RankDuty& duty, const MicrobatchSizes& microbatches, int64_t next, Turn* turn) {
  turn->inputs = 0;
  for (int64_t i = next; i < microbatches.count() && turn->inputs < duty.from_previous; ++i) turn->inputs += microbatches[i];
  turn->gradients = std::clamp<int64_t>(duty.from_next - 1, 0, turn->left - turn->own);
}

// ZB-V puts weights off at its end alone (family_order.cc): stage s runs the last s input gradients of each way before them. Of
// fewer than 2 S - 1 rounds the others are left out.
At PeakOfPutOff(const RankDuty& duty, const MicrobatchSizes& microbatches, const Flight& flight,
                const EngineActivations& activations) {
  const ScheduleTraits& traits = TraitsOf(duty.schedule);
  if (!traits.splits_backward || !traits.fixed_order || duty.stage == 0) return {};
  const int64_t stages = duty.num_stages, before = duty.stage, rounds = microbatches.count();
  const int64_t down = std::max(2 * stages - 1, rounds) - stages, up = down + stages - before;  // rounds that are through then
  const auto left = [&](int64_t through) { return std::max<int64_t>(0, rounds - through); };
  const int64_t waiting = std::min(before, left(down)) + std::min(before, left(up));
  if (waiting == 0) return {};
  const int64_t chunk = microbatches[0] * duty.largest_ministage;
  Turn turn;
  turn.own = microbatches[0];
  turn.left = microbatches.Sum(flight.microbatches);
  turn.waiting = waiting * chunk;
  return activations.Peak(turn, std::max<int64_t>(1, left(down + before) + left(up + before)) * chunk);
}

At PeakOfBackwards(const Costs& costs, const RankDuty& duty, const MicrobatchSizes& microbatches) {
  const int64_t count = microbatches.count();
  const Flight flight = FlightOf(duty, count);
  const EngineActivations activations(costs, duty, microbatches.Largest());
  const bool in_chunks = duty.ministages > 1 && flight.chunks < flight.microbatches * duty.ministages;
  // What waits for its second half is in flight, too.
  const int64_t put_off = WeightsPutOff(duty.schedule, duty.stage), kept = std::max<int64_t>(1, flight.microbatches - put_off);
  Turn turn;
  turn.left = microbatches.Sum(kept);
  At peak = PeakOfPutOff(duty, microbatches, flight, activations);
  Candidates candidates;
  for (int64_t i = 0; i < (microbatches.AreKnownToFall() ? std::min<int64_t>(count, 1 + put_off) : count); ++i) {
    turn.own = microbatches[i];
    if (candidates.Take(turn)) {
      AddHandedOver(duty, microbatches, i + kept, &turn);
      const At moment = activations.Peak(turn, in_chunks ? flight.chunks * turn.own * duty.largest_ministage : kNoBound);
      if (moment.total() > peak.total()) peak = moment;
    }
    turn.done += turn.own;
    turn.left -= turn.own;
    if (i + kept < count) turn.left += microbatches[i + kept];
    if (put_off > 0) turn.waiting += duty.layers * (turn.own - (i >= put_off ? microbatches[i - put_off] : 0));
  }
  return peak;
}

At PeakOfForwards(const Costs& costs, const RankDuty& duty, const MicrobatchSizes& microbatches) {
  At peak;
  // Where the first is the largest, its backward holds as much at the head as any forward; over ministages the head comes last.
  if (!duty.head || microbatches.AreKnownToFall() || duty.ministages > 1) return peak;
  const int64_t count = microbatches.count(), all = microbatches.Sum(count);
  const int64_t put_off = WeightsPutOff(duty.schedule, duty.stage);
  const int64_t flight = std::max<int64_t>(1, FlightOf(duty, count).microbatches - put_off);
  const EngineActivations activations(costs, duty, microbatches.Largest());
  Turn turn;
  Candidates candidates;
  for (int64_t i = 0; i < count; ++i) {
    turn.own = microbatches[i];
    const int64_t through = i - flight;  // the last whose backward is over, or its first half
    turn.left += turn.own - (through >= 0 ? microbatches[through] : 0);
    if (put_off > 0 && through >= 0) {
      turn.waiting += duty.layers * (microbatches[through] - (through >= put_off ? microbatches[through - put_off] : 0));
    }
    if (!candidates.Take(turn)) continue;
    const At moment = activations.Forward(turn, all);
    if (moment.total() > peak.total()) peak = moment;
  }
  return peak;
}

// A slot for each input that waits, as large as the largest.
int64_t InputsInHost(const Costs& costs, const RankDuty& duty, const MicrobatchSizes& microbatches) {
  if (!duty.offload.activations || microbatches.count() == 0) return 0;
  const Flight flight = FlightOf(duty, microbatches.count());
  const int64_t all = duty.layers * std::min(microbatches.count(), flight.microbatches);
  HostSlots slots;
  slots.count = static_cast<int32_t>(duty.ministages > 1 ? std::min(all, flight.chunks * duty.largest_ministage) : all);
  slots.most_samples = microbatches.Largest();
  return slots.BlockBytes(costs.BoundaryBytes(1));
}

// Where a backward comes in two halves the gradients of the head's weights wait in one sum, with those of the table that a tied
// one shares.
int64_t WaitingOfHead(const Costs& costs, const RankDuty& duty) {
  if (!duty.head || !TraitsOf(duty.schedule).splits_backward) return 0;
  const bool tied = costs.workload().model.tie_embeddings;
  const int64_t table = tied ? costs.UnitElements(kEmbeddingUnit, duty.tp_share) : 0;
  return costs.gradient_bytes() * (costs.UnitElements(kHeadUnit, duty.tp_share) + table);
}

}  // namespace

int64_t TokenBytesOf(const Costs& costs, const RankDuty& duty, const MicrobatchSizes& microbatches) {
  if (!duty.embedding && !duty.head) return 0;
  const int64_t samples = duty.samples > 0 ? duty.samples : microbatches.Sum(microbatches.count());
  return costs.SavedBytes(duty.kind, kEmbeddingUnit, OpSet::None(), static_cast<double>(samples));
}

MemoryByPurpose EngineMemoryOf(const Costs& costs, const RankDuty& duty, const MicrobatchSizes& microbatches) {
  MemoryByPurpose memory;
  const int64_t count = microbatches.count(), rounds = duty.rounds > 0 ? duty.rounds : 2;
  AddEngineState(costs, duty, std::max(rounds, count), &memory);
  memory.context = costs.ContextBytes(duty.kind) + NcclBytes(costs.nccl(duty.kind), duty, costs.workload().model.tie_embeddings);
  memory.host += InputsInHost(costs, duty, microbatches);
  if (count == 0) return memory;
  const At backward = PeakOfBackwards(costs, duty, microbatches), forward = PeakOfForwards(costs, duty, microbatches);
  const At& peak = forward.total() > backward.total() ? forward : backward;
  // Inputs are counted with their slots.
  const int64_t slots = costs.BoundaryBytes(static_cast<double>(SlotSamples(duty, microbatches.Largest())));
  memory.slots += slots;
  memory.boundaries = peak.boundaries - slots;
  memory.saved = peak.saved;
  memory.workspace = peak.workspace;
  memory.saved += TokenBytesOf(costs, duty, microbatches) + WaitingOfHead(costs, duty);
  return memory;
}

}  // namespace motley::planner
