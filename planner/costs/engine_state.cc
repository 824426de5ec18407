#include "planner/costs/engine_state.h"

#include <algorithm>

#include "planner/plan/state_in_turn.h"

namespace motley::planner {
namespace {

// The rank's stage, as its programs have it. Of a unit of several ranks each computes a part.
StateInTurn StateOf(const RankDuty& duty) {
  return {.schedule = duty.schedule,
          .zero_stage = duty.zero_stage,
          .units = duty.group_size,
          .ranks = duty.tp_share < 1 ? 2 : duty.group_size,
          .across = duty.sums_across,
          .offload = duty.offload.Or(duty.stage_offload),
          .steps_in_turn = duty.steps_in_turn,
          .prefetch = duty.prefetch};
}

int64_t PartOf(double share, int64_t elements) { return static_cast<int64_t>(share * static_cast<double>(elements) + 0.5); }

// State and the buffers of parameters and gradients, as programs declare them (docs/inside/pipelines.md).
class EngineState {
 public:
  EngineState(const Costs& costs, const RankDuty& duty, int64_t rounds)
      : costs_(costs),
        duty_(duty),
        rounds_(rounds),
        state_(StateOf(duty)),
        embedding_(costs.UnitElements(UnitKind::kEmbedding, duty.tp_share)),
        layer_(costs.UnitElements(UnitKind::kLayer, duty.tp_share)),
        head_(costs.UnitElements(UnitKind::kHead, duty.tp_share)),
        tied_(costs.workload().model.tie_embeddings),
        layered_(state_.layered()),
        zero_stage_(state_.ZeroAsRun()),
        gathers_(state_.Gathers()),
        reduces_in_turn_(state_.Reduces()) {}

  void AddTo(MemoryByPurpose* memory) const {
    const auto sum = [this](int64_t layer, int64_t embedding, int64_t head) {
      return duty_.layers * layer + (duty_.embedding ? embedding : 0) + (duty_.head ? head : 0);
    };
    const int64_t elements = sum(layer_, embedding_, head_);
    const int64_t whole = sum(costs_.UnitElements(UnitKind::kLayer), costs_.UnitElements(UnitKind::kEmbedding),
                              costs_.UnitElements(UnitKind::kHead));
    const int64_t owned = PartOf(duty_.share * duty_.replica_share, whole);
    const int64_t size = costs_.element_bytes(), gradient_size = costs_.gradient_bytes();
    const bool across = duty_.sums_across;
    OwnedBytes shards = costs_.OnDevice(duty_.offload, owned);
    if (layered_ && duty_.steps_in_turn) shards.gradients = 0;  // the step takes the sum from its buffer
    // A tied embedding has buffers of its own for the whole step; its home is one where it is not gathered.
    const bool copy = tied_ && duty_.head && !duty_.embedding, kept = tied_ && duty_.embedding;
    // Beside other pipelines what the rank keeps of its stage's, of which it owns a part; a tied embedding whole.
    const int64_t at_home = across && kept ? embedding_ : 0;
    const int64_t sharded = across ? at_home + PartOf(duty_.share, elements - at_home) : owned;
    memory->parameters = gathers_ && !across ? shards.parameters : size * (zero_stage_ == 3 ? sharded : elements);
    memory->gradients = reduces_in_turn_ && !across ? shards.gradients : gradient_size * (zero_stage_ >= 2 ? sharded : elements);
    memory->optimizer = shards.optimizer;
    memory->slots = StateSlots();
    if (copy || (kept && gathers_ && !across)) memory->gathered += size * embedding_;
    if (copy || (kept && reduces_in_turn_ && !across)) memory->gathered += gradient_size * embedding_;
    if (gathers_) memory->gathered += size * Parameters();
    if (reduces_in_turn_) memory->gathered += gradient_size * Gradients();
    if (!duty_.offload.takes_state()) return;
    memory->host += sum(AreaBytes(UnitKind::kLayer), AreaBytes(UnitKind::kEmbedding), AreaBytes(UnitKind::kHead));
  }

 private:
  bool EmbeddingInTurn() const { return duty_.embedding && !tied_; }
  int64_t units() const { return duty_.layers + (EmbeddingInTurn() ? 1 : 0) + (duty_.head ? 1 : 0); }

  // `count` buffers in turn. Where places `shift` from one microbatch to the next, every unit has been in all of them. A single
  // unit has one buffer, or with several `uses` another.
  int64_t InTurn(int64_t count, bool shift, int64_t uses) const {
    const Turns turns(count, EmbeddingInTurn() ? embedding_ : 0, duty_.layers, layer_, duty_.head ? head_ : 0);
    if (shift && (units() > 1 || uses > 1)) return (uses > 1 ? count : std::min(count, units())) * turns.Largest();
    return turns.Sum();
  }

  // Of a unit's place in host memory, of what the rank owns of it: no less than where its array is really cut.
  int64_t AreaBytes(UnitKind unit) const {
    const double share = duty_.share * duty_.replica_share;
    const int64_t elements = costs_.UnitElements(unit);
    const auto cut = static_cast<int64_t>(share * static_cast<double>(elements)) + (share > 0 ? 1 : 0);
    return costs_.InHost(duty_.offload, static_cast<double>(std::min(cut, elements))).AreaBytes();
  }
  // What comes from the host for the optimizer, a unit after the other: in slots, each as large as the largest in it.
  int64_t StateSlots() const {
    if (!duty_.offload.takes_state()) return 0;
    return Turns(duty_.prefetch + 1, duty_.embedding ? AreaBytes(UnitKind::kEmbedding) : 0, duty_.layers,
                 AreaBytes(UnitKind::kLayer), duty_.head ? AreaBytes(UnitKind::kHead) : 0)
        .Sum();
  }

  // Where some wait in host memory, a ministage's units, and those that come meanwhile; with ZeRO 3 a unit.
  int64_t Parameters() const {
    if (!state_.GathersByMinistage()) {
      const int64_t buffers = state_.ParameterBuffers(1);
      return InTurn(buffers, ParametersShift(buffers), 1);
    }
    const int64_t embedding = EmbeddingInTurn() ? embedding_ : 0, head = duty_.head ? head_ : 0;
    if (duty_.ministages == 1) return duty_.layers * layer_ + embedding + head;
    const int64_t ends = embedding > 0 || head > 0 ? 1 : 0;  // one of the two is beside the ministage's layers
    const int64_t buffers = std::min(units(), state_.ParameterBuffers(duty_.largest_ministage + ends));
    // There and back a unit comes into the same one.
    return buffers * layer_ + std::max<int64_t>(0, embedding - layer_) + std::max<int64_t>(0, head - layer_);
  }

  // Between two forwards, or two backwards, the units begin again from the other end than where they were left.
  bool ParametersShift(int64_t buffers) const {
    if (layered_ || rounds_ < 2) return false;
    if (duty_.ministages > 1) return units() > buffers;
    const int64_t flight = duty_.in_flight > 0 && !TraitsOf(duty_.schedule).keeps_all
                               ? duty_.in_flight
                               : InFlight(duty_.schedule, duty_.stage, duty_.num_stages, 1, rounds_);
    return flight > 1 && units() % buffers != 0 && units() > buffers;
  }
  int64_t Gradients() const {
    if (!layered_) return InTurn(kBuffersInTurn, rounds_ > 1 && (units() % 2 == 1 || duty_.ministages > 1), rounds_);
    if (state_.GathersByUnit() || rounds_ < 2) return InTurn(kBuffersInTurn, false, 1);
    // Each microbatch passes the whole ministage, so its gradients add up until the last; the next one takes the same buffers.
    const int64_t embedding = EmbeddingInTurn() ? embedding_ : 0, head = duty_.head ? head_ : 0;
    if (duty_.ministages == 1) return duty_.layers * layer_ + embedding + head;
    const int64_t layers = duty_.largest_ministage;
    if (duty_.head) {
      const int64_t at_embedding = embedding > 0 ? std::max(embedding, layer_) : layer_;
      return (layers - 1) * layer_ + std::max(head, layer_) + at_embedding;
    }
    // No fewer than two: the first that is free is not taken while there is one alone.
    if (layers == 1) return layer_ + std::max(embedding, layer_);
    return layers * layer_ + embedding;
  }

  const Costs& costs_;
  const RankDuty& duty_;
  const int64_t rounds_;  // microbatches of the rank of the stage that has most
  const StateInTurn state_;
  const int64_t embedding_, layer_, head_;
  const bool tied_, layered_;
  const int zero_stage_;
  const bool gathers_, reduces_in_turn_;
};

}  // namespace

bool GathersByUnit(const RankDuty& duty) { return StateOf(duty).GathersByUnit(); }

void AddEngineState(const Costs& costs, const RankDuty& duty, int64_t rounds, MemoryByPurpose* memory) {
  EngineState(costs, duty, rounds).AddTo(memory);
}

}  // namespace motley::planner
