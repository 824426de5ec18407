#include "planner/costs/memory_model.h"

#include <algorithm>

#include "planner/costs/engine_memory.h"
#include "planner/plan/state_in_turn.h"

namespace motley::planner {
namespace {

constexpr UnitKind kEmbedding = UnitKind::kEmbedding, kLayer = UnitKind::kLayer, kHead = UnitKind::kHead;

// Never negative, so a cast rounds as llround does, several times as fast.
int64_t Scaled(double part, int64_t amount) { return static_cast<int64_t>(part * static_cast<double>(amount) + 0.5); }

// Samples that a rank keeps at the peak.
struct Kept {
  int64_t samples = 0;        // in the embedding and the head
  int64_t layer_samples = 0;  // samples x layers that they have passed
  int64_t largest = 0;        // microbatch
};

// A tied head in another stage than the embedding computes with a copy of it.
int64_t HeadElements(const Costs& costs, const RankDuty& duty) {
  if (!duty.head) return 0;
  const bool copy = costs.workload().model.tie_embeddings && !duty.embedding;
  return costs.UnitElements(kHead) + (copy ? costs.UnitElements(kEmbedding) : 0);
}
int64_t EmbeddingElements(const Costs& costs, const RankDuty& duty) {
  return duty.embedding ? costs.UnitElements(kEmbedding) : 0;
}

// A tied embedding beside its head has a buffer of its own.
int64_t TwoBuffers(const Costs& costs, const RankDuty& duty) {
  const int64_t embedding = EmbeddingElements(costs, duty);
  const bool tied = costs.workload().model.tie_embeddings && duty.embedding && duty.head;
  const Turns turns(kBuffersInTurn, tied ? 0 : embedding, duty.layers, costs.UnitElements(kLayer), HeadElements(costs, duty));
  return turns.Sum() + (tied ? embedding : 0);
}

// The two largest neighbours among the ministages: what offloading leaves on the device (Zorse table 1).
int64_t TwoMinistages(const Costs& costs, const RankDuty& duty, int64_t all) {
  if (duty.ministages < 2) return all;
  const int64_t layers = duty.largest_ministage * costs.UnitElements(kLayer);
  const int64_t embedding = EmbeddingElements(costs, duty), head = HeadElements(costs, duty);
  const int64_t ends = duty.ministages == 2 ? embedding + head : std::max(embedding, head);
  return std::min(all, 2 * layers + ends);
}

void AddState(const Costs& costs, const RankDuty& duty, MemoryByPurpose* memory) {
  const int64_t elements = duty.layers * costs.UnitElements(kLayer) + EmbeddingElements(costs, duty) + HeadElements(costs, duty);
  const int64_t size = costs.element_bytes(), moments = costs.optimizer_bytes_per_element();
  const int64_t whole = Scaled(duty.tp_share, elements);
  const int64_t owned = duty.zero_stage == 0 ? whole : Scaled(duty.share, elements);
  const int64_t near = TwoMinistages(costs, duty, elements);
  const double near_part = elements > 0 ? static_cast<double>(near) / static_cast<double>(elements) : 1;
  const bool shared = duty.group_size > 1;

  memory->parameters = size * (duty.zero_stage == 3 ? owned : whole);
  if (duty.offload.parameters) {
    memory->host += size * owned;
    memory->parameters = Scaled(near_part, memory->parameters);
  }
  // A ministage's optimizer step right after its backward frees its gradients (Zorse section 3.1.2).
  const bool interleaved = duty.offload.parameters && TraitsOf(duty.schedule).by_ministage && !duty.sums_across;
  memory->gradients = size * (duty.zero_stage >= 2 ? owned : whole);
  if (interleaved) memory->gradients = Scaled(near_part, memory->gradients);
  if (duty.replica_gradients) memory->gradients = Scaled(duty.replica_share, memory->gradients);

  const int64_t buffers = Scaled(duty.tp_share, TwoBuffers(costs, duty));
  if (duty.zero_stage == 3 && shared) memory->gathered += size * buffers;
  if ((duty.zero_stage >= 2 && shared) || (duty.replica_gradients && duty.replica_share < 1)) {
    // Layered with resident parameters takes each microbatch through the whole ministage: its gradients add up until the last.
    const bool whole_ministage = duty.zero_stage < 3 && TraitsOf(duty.schedule).by_ministage;
    memory->gathered += size * (whole_ministage ? Scaled(duty.tp_share, near) : buffers);
  }

  memory->optimizer = Scaled(duty.replica_share, moments * owned);
  if (duty.offload.optimizer) {
    memory->host += memory->optimizer;
    // Streams through two buffers of the largest unit's part.
    const int64_t largest = std::max({costs.UnitElements(kLayer), EmbeddingElements(costs, duty), HeadElements(costs, duty)});
    const double part = elements > 0 ? 2 * static_cast<double>(largest) / static_cast<double>(elements) : 1;
    memory->optimizer = Scaled(std::min(1.0, part), memory->optimizer);
  }
}

// Activations at one moment.
struct Moment {
  int64_t boundaries = 0, saved = 0, workspace = 0;
  int64_t total() const { return boundaries + saved + workspace; }
};

// The three moments that can be the peak: the turn at the head, the first layer backward, the embedding's backward
// (memory/program_memory.h walks them for the layered schedule).
class Activations {
 public:
  Activations(const Costs& costs, const RankDuty& duty, const Kept& kept) : costs_(costs), duty_(duty), kept_(kept) {
    const auto samples = static_cast<double>(kept.samples), layer_samples = static_cast<double>(kept.layer_samples);
    const auto m = static_cast<double>(kept.largest);
    boundary_all_ = costs.BoundaryBytes(samples);
    boundary_ = costs.BoundaryBytes(m);
    layer_boundaries_ = costs.BoundaryBytes(layer_samples);
    const double layer_of_sample = costs.SavedOfSample(duty.kind, kLayer, duty.recompute, duty.tp_share);
    layer_saved_ = Costs::SavedBytesOf(layer_of_sample, layer_samples);
    embedding_saved_ = duty.embedding ? costs.SavedBytes(duty.kind, kEmbedding, OpSet::None(), samples, duty.tp_share) : 0;
    again_ = costs.SavedBytes(duty.kind, kLayer, OpSet::None(), m, duty.tp_share) - Costs::SavedBytesOf(layer_of_sample, m);
    if (!duty.offload.activations) return;
    // The current microbatch's and the next one's stay.
    host_ = layer_boundaries_;
    const bool by_layer = TraitsOf(duty.schedule).by_ministage && duty.zero_stage == 3;
    layer_boundaries_ = std::min(layer_boundaries_, 2 * boundary_ * (by_layer ? 1 : duty.largest_ministage));
    boundary_all_ = std::min(boundary_all_, 2 * boundary_);
  }

  int64_t host() const { return host_; }
  Moment Peak() const {
    Moment peak = duty_.layers > 0 ? LayerMoment() : Moment();
    for (const Moment& other : {duty_.head ? HeadMoment() : Moment(), duty_.embedding ? EmbeddingMoment() : Moment()}) {
      if (other.total() > peak.total()) peak = other;
    }
    return peak;
  }

 private:
  bool layered() const { return TraitsOf(duty_.schedule).by_ministage; }
  bool gpipe() const { return keeps_all() && !layered(); }
  bool keeps_all() const { return TraitsOf(duty_.schedule).keeps_all; }
  int64_t HeadSaved(int64_t samples) const {
    return duty_.head ? costs_.SavedBytes(duty_.kind, kHead, OpSet::None(), static_cast<double>(samples), duty_.tp_share) : 0;
  }
  int64_t Workspace(UnitKind unit) const {
    return costs_.WorkspaceBytes(duty_.kind, unit, static_cast<double>(kept_.largest), duty_.tp_share);
  }

  // Layered and GPipe have passed the head with every microbatch before the first backward, the others with one.
  Moment HeadMoment() const {
    const bool all = keeps_all();
    return {layer_boundaries_ + (all ? boundary_all_ : boundary_) + boundary_,
            embedding_saved_ + layer_saved_ + HeadSaved(all ? kept_.samples : kept_.largest), Workspace(kHead)};
  }
  // Between layers lives the gradient of every microbatch (layered) or of one.
  Moment LayerMoment() const {
    Moment moment{layer_boundaries_ + (layered() ? boundary_all_ : boundary_) + boundary_,
                  embedding_saved_ + layer_saved_ + again_, Workspace(kLayer)};
    if (gpipe() && duty_.head) {
      moment.saved += HeadSaved(kept_.samples - kept_.largest);
      moment.boundaries += boundary_all_ - boundary_;
    }
    return moment;
  }
  // Layered has nothing left of the layers; the others still keep the microbatches that follow.
  Moment EmbeddingMoment() const {
    if (layered()) return {boundary_all_, embedding_saved_, Workspace(kEmbedding)};
    const double rest = kept_.samples > 0 ? 1 - static_cast<double>(kept_.largest) / static_cast<double>(kept_.samples) : 0;
    return {Scaled(rest, layer_boundaries_) + boundary_, embedding_saved_ + Scaled(rest, layer_saved_), Workspace(kEmbedding)};
  }

  const Costs& costs_;
  const RankDuty& duty_;
  const Kept& kept_;
  int64_t boundary_all_ = 0, boundary_ = 0, layer_boundaries_ = 0, layer_saved_ = 0, embedding_saved_ = 0, again_ = 0, host_ = 0;
};

MemoryByPurpose Sum(const Costs& costs, const RankDuty& duty, const Kept& kept) {
  MemoryByPurpose memory;
  AddState(costs, duty, &memory);
  memory.context = costs.ContextBytes(duty.kind) + NcclBytes(costs.nccl(duty.kind), duty, costs.workload().model.tie_embeddings);
  if (kept.samples == 0) return memory;
  const Activations activations(costs, duty, kept);
  const Moment peak = activations.Peak();
  memory.boundaries = peak.boundaries;
  memory.saved = peak.saved;
  memory.workspace = peak.workspace;
  memory.host += activations.host();
  return memory;
}

// `samples` of `microbatches` in flight.
Kept KeptOf(const RankDuty& duty, const Flight& flight, int64_t samples, int64_t largest) {
  int64_t layer_samples = samples * duty.layers;
  if (duty.ministages > 1 && !TraitsOf(duty.schedule).keeps_all) {
    layer_samples = std::min(layer_samples, flight.chunks * largest * duty.largest_ministage);
  }
  return {samples, layer_samples, largest};
}

}  // namespace

int64_t InFlight(ScheduleFamily schedule, int stage, int num_stages, int64_t ministages, int64_t count) {
  const int64_t stages = num_stages, after = num_stages - 1 - stage, all = count * ministages;
  if (TraitsOf(schedule).keeps_all) return all;
  if (TraitsOf(schedule).splits_backward) return std::min(all, ministages * stages);
  if (ministages > 1) return std::min(all, 2 * after + (ministages - 1) * stages + 1);
  return std::min(all, after + 1);
}

Flight FlightOf(const RankDuty& duty, int64_t count) {
  if (TraitsOf(duty.schedule).keeps_all) return {count, count * duty.ministages};
  const int64_t chunks = duty.in_flight > 0 ? std::min(duty.in_flight, count * duty.ministages)
                                            : InFlight(duty.schedule, duty.stage, duty.num_stages, duty.ministages, count);
  return {std::min(count, (chunks + duty.ministages - 1) / duty.ministages), chunks};
}

MemoryByPurpose MemoryOf(const Costs& costs, const RankDuty& duty, const std::vector<int64_t>& microbatches) {
  if (IsEngines(costs)) return EngineMemoryOf(costs, duty, MicrobatchSizes(microbatches));
  const Flight flight = FlightOf(duty, static_cast<int64_t>(microbatches.size()));
  const size_t window = static_cast<size_t>(flight.microbatches);
  int64_t sum = 0, most = 0, largest = 0;
  for (size_t i = 0; i < microbatches.size(); ++i) {
    sum += microbatches[i];
    if (i >= window) sum -= microbatches[i - window];
    most = std::max(most, sum);
    largest = std::max(largest, microbatches[i]);
  }
  return Sum(costs, duty, KeptOf(duty, flight, most, largest));
}

MemoryByPurpose MemoryOf(const Costs& costs, const RankDuty& duty, int64_t count, int64_t size, int64_t last) {
  if (IsEngines(costs)) return EngineMemoryOf(costs, duty, MicrobatchSizes(count, size, last));
  const Flight flight = FlightOf(duty, count + (last > 0 ? 1 : 0));
  const int64_t full = std::min(flight.microbatches, count);
  const int64_t samples = full * size + (flight.microbatches > full ? last : 0);
  return Sum(costs, duty, KeptOf(duty, flight, samples, count > 0 ? size : last));
}

}  // namespace motley::planner
