#include "planner/pricing/estimate_passes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace motley::planner {
namespace {

// Samples up to `end`, behind those before, are there.
struct Arrival {
  int64_t end = 0;
  double at = 0;
};
using Arrivals = std::vector<Arrival>;  // in the order of the batch

// A microbatch of one of the stage's actors.
struct Slot {
  size_t actor = 0;
  size_t run = 0;  // of the actor's microbatches
  int64_t size = 0, begin = 0, end = 0;
  bool last = false;  // of the actor's
};

// A border, as one of its senders sees it: a transfer after the other.
struct Sending {
  double seconds_per_sample = 0, latency_seconds = 0;  // of the sender's own
};

// One stage in the two passes: when its actors' compute and its collective lane are free, and its buffers
// (docs/inside/planner.md, "Lowering").
class StagePasses {
 public:
  StagePasses(const StageEstimate& stage, bool shares_borders)
      : stage_(stage), free_(stage.actors.size(), 0), gathered_(stage.work.chunks.size(), 0) {
    if (shares_borders) Deal();
    std::fill(free_.begin(), free_.end(), stage.start_seconds);
    if (!in_turn()) return;
    for (size_t c = 0; c < std::min<size_t>(keeps() ? 3 : 2, chunks()); ++c) Gather(c);
  }

  size_t chunks() const { return stage_.work.chunks.size(); }
  double end() const { return std::max({compute_end(), lane_, left_}) + stage_.last_step; }

  // `from`, `to`: what comes over the border before it and goes over the one behind it, where there is one.
  void Forward(size_t c, const Arrivals* from, const Sending& border, Arrivals* to) {
    const double exposed = in_turn() ? (1 - stage_.hidden) * stage_.gather_seconds[c] : 0;
    Begin(exposed, in_turn() ? gathered_[c] : 0);
    Pass(c, false, from, border, to);
    Offload(c);
    if (!in_turn() || StaysAtTurn(c)) return;
    freed_[Buffer(c)] = compute_end();
    if (!(keeps() && c == 0)) Gather(c + 2);
  }

  void Backward(size_t c, const Arrivals* from, const Sending& border, Arrivals* to) {
    const double exposed = in_turn() && !StaysAtTurn(c) ? (1 - stage_.hidden) * stage_.gather_seconds[c] : 0;
    if (stage_.copies() && c + 1 == chunks()) Begin(0, copy_ + CopySeconds(c, false));
    Begin(exposed, std::max(in_turn() ? gathered_[c] : 0, reduced_[Buffer(c)]));
    Pass(c, true, from, border, to);
    const double end = compute_end();
    Begin((1 - stage_.hidden) * stage_.reduce_seconds[c], 0);
    if (in_turn()) {
      freed_[Buffer(c)] = end;
      if (c >= 2 && !(keeps() && c == 2)) Gather(c - 2);
    }
    if (stage_.reduce_seconds[c] > 0) Reduce(c, end);
    if (stage_.leave_seconds[c] > 0) Leave(c, stage_.reduce_seconds[c] > 0 ? lane_ : end);
  }

  double MostOfAUnit() const {
    double most = 0;
    for (const ActorSeconds& actor : stage_.actors) {
      double own = 0;
      for (const MicrobatchRun& run : actor.runs) own += static_cast<double>(run.samples * run.count);
      most = std::max(most, own);
    }
    return most;
  }

 private:
  bool in_turn() const { return stage_.work.gathers; }
  bool keeps() const { return stage_.work.keeps_embedding; }
  size_t Buffer(size_t c) const { return keeps() && c == 0 ? 2 : c % 2; }
  bool StaysAtTurn(size_t c) const { return c + 2 >= chunks() || (keeps() && c == 0); }
  double compute_end() const { return *std::max_element(free_.begin(), free_.end()); }

  void Deal() {
    for (size_t a = 0; a < stage_.actors.size(); ++a) {
      const ActorView& actor = *stage_.actors[a].actor;
      size_t run = 0;
      for (int64_t k = 0; k < actor.count(); ++k) {
        run += actor.size(k) != stage_.actors[a].runs[run].samples ? 1 : 0;
        slots_.push_back({a, run, actor.size(k), actor.begin[k], actor.begin[k] + actor.samples(k), k + 1 == actor.count()});
      }
    }
    if (stage_.actors.size() > 1)
      std::sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.begin < b.begin; });
    sent_.assign(free_.size(), 0);
  }

  // The slowest actor's copies of a chunk's activations: of all its microbatches, or of the last.
  double CopySeconds(size_t c, bool all) const {
    double slowest = 0;
    for (const ActorSeconds& actor : stage_.actors) {
      double own = 0;
      const PassesSeconds* passes = actor.passes.data() + c * actor.runs.size();
      for (size_t i = 0; i < actor.runs.size(); ++i)
        own = all ? own + static_cast<double>(actor.runs[i].count) * passes[i].copy : passes[i].copy;
      slowest = std::max(slowest, own);
    }
    return slowest;
  }

  // Beside the forwards that are left of the chunk; a stage alone makes one of them.
  void Offload(size_t c) {
    if (!stage_.copies()) return;
    const double all = CopySeconds(c, true), end = compute_end();
    const bool joined = slots_.empty();
    const double begin = joined ? end : end - stage_.forward[c].all + stage_.forward[c].first;
    copy_ = std::max(std::max(copy_, begin) + all, end + CopySeconds(c, false));
  }

  void Begin(double exposed, double at) {
    for (double& free : free_) free = std::max(free + exposed, at);
  }
  void Together(double seconds) { std::fill(free_.begin(), free_.end(), compute_end() + seconds); }

  void Pass(size_t c, bool backward, const Arrivals* from, const Sending& border, Arrivals* to) {
    if (from == nullptr && to == nullptr) {
      if (stage_.in_step[backward]) return Together((backward ? stage_.backward : stage_.forward)[c].all);
      for (size_t a = 0; a < free_.size(); ++a) {
        const ActorSeconds& actor = stage_.actors[a];
        const PassesSeconds* passes = actor.passes.data() + c * actor.runs.size();
        double copies = 0, alone = passes[0].backward;  // the first microbatch's backward, beside which the others' inputs come
        for (size_t i = 0; i < actor.runs.size(); ++i) {
          free_[a] += static_cast<double>(actor.runs[i].count) * (backward ? passes[i].backward : passes[i].forward);
          copies += static_cast<double>(actor.runs[i].count) * passes[i].copy;
        }
        if (backward) free_[a] += std::max(0.0, copies - passes[0].copy - alone);
      }
      return;
    }
    if (to != nullptr) to->clear(), std::fill(sent_.begin(), sent_.end(), 0);
    size_t next = 0;
    for (const Slot& slot : slots_) {
      const ActorSeconds& actor = stage_.actors[slot.actor];
      double& free = free_[slot.actor];
      const PassesSeconds& pass = actor.passes[c * actor.runs.size() + slot.run];
      const double ahead = backward ? pass.recompute * stage_.PartAhead(c, slot.last) : 0;
      free += ahead;
      if (from != nullptr) {
        while ((*from)[next].end <= slot.begin) ++next;
        for (size_t i = next;; ++i) {
          free = std::max(free, (*from)[i].at);
          if ((*from)[i].end >= slot.end) break;
        }
      }
      free += (backward ? std::max(pass.backward, pass.copy) : pass.forward) - ahead;
      if (to == nullptr) continue;
      double& sent = sent_[slot.actor];
      sent = std::max(sent, free) + border.latency_seconds + border.seconds_per_sample * static_cast<double>(slot.size);
      to->push_back({slot.end, sent});
    }
  }

  void Gather(size_t c) {
    copy_ = std::max(copy_, freed_[Buffer(c)]) + stage_.fetch_seconds[c];
    lane_ = std::max({lane_, copy_, freed_[Buffer(c)]}) + stage_.gather_seconds[c];
    gathered_[c] = lane_;
  }

  // The reductions of a chunk of several units begin with the last microbatch's backward.
  void Reduce(size_t c, double finish) {
    const double seconds = stage_.reduce_seconds[c];
    const bool pieces = stage_.work.chunks[c].part.units() > 1;
    const double begin = pieces ? finish - (1 - 1 / kReductionPieces) * stage_.backward[c].last : finish;
    lane_ = std::max(std::max(lane_, begin) + seconds, finish + (pieces ? seconds / kReductionPieces : seconds));
    reduced_[Buffer(c)] = lane_;
    if (!keeps() || c + 1 < chunks()) return;
    lane_ += stage_.reduce_seconds[0];  // the head's part of a tied embedding's gradient
    reduced_[2] = lane_;
  }

  // The sum goes to host memory, and its buffer is free then.
  void Leave(size_t c, double summed) {
    left_ = copy_ = std::max(copy_, summed) + stage_.leave_seconds[c];
    reduced_[Buffer(c)] = copy_;
  }

  const StageEstimate& stage_;
  std::vector<Slot> slots_;                // in the order of the batch
  std::vector<double> free_, sent_;        // by actor
  double lane_ = 0, copy_ = 0, left_ = 0;  // left_: when the last sum is in host memory that waits there
  double freed_[3] = {0, 0, 0}, reduced_[3] = {0, 0, 0};
  std::vector<double> gathered_;  // by chunk
};

}  // namespace

double EndOfPasses(const PipelineView& pipeline, const std::vector<StageEstimate>& stages, const std::vector<Border>& borders) {
  std::vector<StagePasses> passes;
  std::vector<size_t> next(static_cast<size_t>(pipeline.num_stages), 0);  // chunk of each stage
  for (int s = 0; s < pipeline.num_stages; ++s) {
    passes.emplace_back(stages[pipeline.first_stage + s], pipeline.num_stages > 1);
  }
  const std::vector<Element>& elements = pipeline.elements;
  // Between an element and the next, out of `stage`.
  const auto border_of = [&](size_t e, size_t i) {
    return Sending{borders[e].seconds / passes[i].MostOfAUnit(), borders[e].latency_seconds};
  };
  Arrivals arrivals, departures;
  for (const bool backward : {false, true}) {
    for (size_t k = 0; k < elements.size(); ++k) {
      const size_t e = backward ? elements.size() - 1 - k : k, before = backward ? e + 1 : e - 1,
                   behind = backward ? e - 1 : e + 1;
      const auto other = [&](size_t at) { return at < elements.size() && elements[at].stage != elements[e].stage; };
      const bool comes = other(before), goes = other(behind);
      const auto i = static_cast<size_t>(elements[e].stage - pipeline.first_stage);
      const std::vector<Chunk>& chunks = stages[elements[e].stage].work.chunks;
      const Sending border = goes ? border_of(std::min(e, behind), i) : Sending{};
      const auto pass = [&](size_t c) {
        const Arrivals* from = comes && (backward ? chunks[c].last : chunks[c].first) ? &arrivals : nullptr;
        Arrivals* to = goes && (backward ? chunks[c].first : chunks[c].last) ? &departures : nullptr;
        backward ? passes[i].Backward(c, from, border, to) : passes[i].Forward(c, from, border, to);
      };
      size_t& c = next[i];
      for (; !backward && c < chunks.size() && chunks[c].element == static_cast<int>(e); ++c) pass(c);
      for (; backward && c > 0 && chunks[c - 1].element == static_cast<int>(e); --c) pass(c - 1);
      std::swap(arrivals, departures);
    }
  }
  double end = 0;
  for (const StagePasses& stage : passes) end = std::max(end, stage.end());
  return end;
}

}  // namespace motley::planner
