#include "planner/lowering/layered.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace motley::planner {
namespace {

// The third buffer, of a tied embedding.
constexpr int32_t kEmbeddingBuffer = 2;

int32_t BufferOf(const ModelShape& model, int32_t unit) {
  return model.tie_embeddings && unit == 0 ? kEmbeddingBuffer : unit % 2;
}

// Writes one rank's program. Emits instructions in an order in which every dependency stands before its user.
class Emitter {
 public:
  Emitter(const ModelShape& model, const LayeredBuffers& buffers, ProgramKind kind, int rank, int world,
          std::vector<int64_t> microbatches, bool recompute)
      : model_(model), recompute_(recompute), last_(static_cast<int32_t>(NumUnits(model)) - 1) {
    program_.kind = kind;
    program_.rank = rank;
    program_.world = world;
    program_.num_units = last_ + 1;
    program_.microbatches = std::move(microbatches);
    program_.parameter_buffers = buffers.parameters;
    if (kind == ProgramKind::kTraining) program_.gradient_buffers = buffers.gradients;
    released_.assign(buffers.parameters.size(), -1);
    reduced_.assign(buffers.gradients.size(), -1);
    gathered_.assign(program_.num_units, -1);
  }

  Program Training() {
    ForwardPass();
    for (int32_t u = last_; u >= 0; --u) {
      BackwardUnit(u);
      AddRelease(u);
      if (u >= 2 && !(tied() && u == 2)) AddGather(u - 2);
      AddReduce(u);
      if (tied() && u == last_) AddReduce(0);
    }
    const int32_t scalars = Add(ReduceScalars{}, {last_compute_});
    Add(OptimizerStep{}, {scalars});
    return std::move(program_);
  }

  Program Evaluation() {
    ForwardPass();
    Add(ReduceScalars{}, {last_compute_});
    return std::move(program_);
  }

 private:
  bool tied() const { return model_.tie_embeddings; }
  bool training() const { return program_.kind == ProgramKind::kTraining; }
  int32_t TiedBuffer(int32_t unit) const { return tied() && unit == last_ ? kEmbeddingBuffer : -1; }
  int32_t microbatches() const { return static_cast<int32_t>(program_.microbatches.size()); }

  // `after` may hold -1 for "nothing"; kept ascending and unique.
  int32_t Add(Operation op, std::vector<int32_t> after) {
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    after.erase(after.begin(), std::upper_bound(after.begin(), after.end(), -1));
    program_.instructions.push_back({std::move(op), std::move(after)});
    return static_cast<int32_t>(program_.instructions.size()) - 1;
  }

  void AddGather(int32_t unit) {
    const int32_t buffer = BufferOf(model_, unit);
    gathered_[unit] = Add(Gather{unit, buffer}, {released_[buffer]});
  }

  // A rank without samples used nothing, but must not free the buffer under the gather.
  void AddRelease(int32_t unit) {
    const int32_t buffer = BufferOf(model_, unit);
    released_[buffer] = Add(Release{buffer}, {gathered_[unit]});
  }

  // What the first instruction of a unit waits for; the others follow it on the lane.
  std::vector<int32_t> Inputs(int32_t unit) const {
    std::vector<int32_t> after = {gathered_[unit]};
    if (TiedBuffer(unit) >= 0) after.push_back(gathered_[0]);
    return after;
  }

  void ForwardPass() {
    AddGather(0);
    for (int32_t u = 0; u <= last_; ++u) {
      if (u < last_) AddGather(u + 1);
      const bool is_layer = u > 0 && u < last_;
      const Keep keep = !training() ? Keep::kNothing : (recompute_ && is_layer ? Keep::kBoundary : Keep::kAll);
      for (int32_t mb = 0; mb < microbatches(); ++mb) {
        last_compute_ =
            Add(Forward{.unit = u, .microbatch = mb, .buffer = BufferOf(model_, u), .tied_buffer = TiedBuffer(u), .keep = keep},
                mb == 0 ? Inputs(u) : std::vector<int32_t>{});
      }
      const bool stays = (training() && u >= last_ - 1) || (tied() && u == 0);
      if (!stays) AddRelease(u);
    }
    if (!training() && tied()) AddRelease(0);
  }

  void BackwardUnit(int32_t u) {
    const int32_t buffer = BufferOf(model_, u), tied_buffer = TiedBuffer(u);
    const bool recompute = recompute_ && u > 0 && u < last_;
    const int32_t reduced = reduced_[buffer];
    for (int32_t mb = 0; mb < microbatches(); ++mb) {
      const std::vector<int32_t> inputs = mb == 0 ? Inputs(u) : std::vector<int32_t>{};
      if (recompute) Add(Recompute{.unit = u, .microbatch = mb, .buffer = buffer, .tied_buffer = tied_buffer}, inputs);
      std::vector<int32_t> after = recompute ? std::vector<int32_t>{} : inputs;
      if (mb == 0) after.push_back(reduced);
      last_compute_ = Add(Backward{.unit = u,
                                   .microbatch = mb,
                                   .buffer = buffer,
                                   .tied_buffer = tied_buffer,
                                   .grad = buffer,
                                   .tied_grad = tied_buffer},
                          after);
    }
    last_write_ = last_compute_;
    if (microbatches() > 0) return;
    last_write_ = Add(ZeroGrad{u, buffer}, {reduced});
    if (tied_buffer >= 0) last_write_ = Add(ZeroGrad{0, tied_buffer}, {});
  }

  void AddReduce(int32_t unit) {
    const int32_t grad = BufferOf(model_, unit);
    reduced_[grad] = Add(ReduceScatter{unit, grad}, {last_write_});
  }

  const ModelShape& model_;
  const bool recompute_;
  const int32_t last_;  // the head
  Program program_;
  std::vector<int32_t> released_;  // by parameter buffer: its newest release
  std::vector<int32_t> reduced_;   // by gradient buffer: its newest reduction
  std::vector<int32_t> gathered_;  // by unit: its newest gather
  int32_t last_compute_ = -1;      // newest forward or backward
  int32_t last_write_ = -1;        // newest write of gradients
};

}  // namespace

LayeredBuffers BuffersOf(const ModelShape& model, const std::vector<UnitSpec>& layout) {
  std::vector<int64_t> sizes(model.tie_embeddings ? 3 : 2, 1);
  for (size_t u = 0; u < layout.size(); ++u) {
    int64_t& size = sizes[BufferOf(model, static_cast<int32_t>(u))];
    size = std::max(size, layout[u].num_elements);
  }
  return {sizes, sizes};
}

absl::StatusOr<std::vector<Program>> LowerTraining(const Plan& plan, const ModelShape& model) {
  MOTLEY_RETURN_IF_ERROR(ValidateForEngine(plan, model));
  const std::vector<UnitPlan>& units = plan.pipelines[0].stages[0].units;
  const LayeredBuffers buffers = BuffersOf(model, ParameterLayout(model));
  std::vector<Program> programs;
  for (size_t r = 0; r < units.size(); ++r) {
    Emitter emitter(model, buffers, ProgramKind::kTraining, static_cast<int>(r), static_cast<int>(units.size()),
                    units[r].microbatches, units[r].ranks[0].recompute.all());
    programs.push_back(emitter.Training());
    MOTLEY_RETURN_IF_ERROR(Validate(programs.back()));
  }
  return programs;
}

absl::StatusOr<std::vector<Program>> LowerEvaluation(const ModelShape& model,
                                                     const std::vector<std::vector<int64_t>>& microbatches) {
  const LayeredBuffers buffers = BuffersOf(model, ParameterLayout(model));
  std::vector<Program> programs;
  for (size_t r = 0; r < microbatches.size(); ++r) {
    Emitter emitter(model, buffers, ProgramKind::kEvaluation, static_cast<int>(r), static_cast<int>(microbatches.size()),
                    microbatches[r], false);
    programs.push_back(emitter.Evaluation());
    MOTLEY_RETURN_IF_ERROR(Validate(programs.back()));
  }
  return programs;
}

}  // namespace motley::planner
