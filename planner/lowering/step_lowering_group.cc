#include "planner/lowering/step_lowering_group.h"

#include <algorithm>
#include <utility>

namespace motley::planner {
namespace {

// Reductions that overlap the last backward of a stage; more pieces say no more about its end.
constexpr int64_t kPieces = 16;
// The same for a microbatch whose parameters come and whose gradients go while it computes.
constexpr int64_t kRoundPieces = 4;

}  // namespace

// All but the unit that is computed last, and that one.
std::pair<Part, Part> SplitLast(const Part& part, bool backward) {
  Part most = part, last;
  if (backward ? part.embedding : part.head) {
    (backward ? most.embedding : most.head) = false;
    (backward ? last.embedding : last.head) = true;
    last.first_layer = backward ? part.first_layer : part.first_layer + part.layers;
    return {most, last};
  }
  most.layers -= 1;
  last.layers = 1;
  last.first_layer = backward ? part.first_layer : part.first_layer + most.layers;
  if (backward) most.first_layer += 1;
  return {most, last};
}

StageGroup::StageGroup(const LoweringContext& context, int stage, StageWork work, StepEnd* end)
    : context_(context), stage_index_(stage), stage_(context.stage(stage)), work_(std::move(work)), end_(end) {
  first_actor_ = stage_.actors.front();
  const size_t chunks = work_.chunks.size();
  for (const int a : stage_.actors) {
    const int64_t count = context_.view.actors[a].count();
    active_ += count > 0 ? 1 : 0;
    rounds_ = std::max(rounds_, count);
  }
  MakePieces();
  released_.assign(stage_.actors.size(), -1);
  reduced_.assign(3, -1);
  forward_.resize(chunks);
  final_.resize(chunks);
  for (size_t c = 0; c < chunks; ++c) {
    forward_[c] = {active_, {{}}};
    final_[c] = {0, std::vector<IndexList>(pieces_[c].size())};
    for (const int a : stage_.actors) {
      const int64_t count = context_.view.actors[a].count();
      if (count > 0 && (!per_round() || count == rounds_)) ++final_[c].actors;
    }
  }
  for (int pass = 0; pass < 2; ++pass) {
    in_turn_[pass].resize(chunks);
    written_[pass].assign(chunks, false);
  }
  if (work_.residency != Residency::kInTurn || active_ == 0) return;
  for (int c = 0; c < std::min<int>(2, static_cast<int>(chunks)); ++c) WriteGather(false, c);
  // The tied embedding leaves buffer 0 to the chunk after the next.
  if (work_.keeps_embedding && chunks > 2) WriteGather(false, 2);
}

// DeepSpeed reduces the gradients of every microbatch where they are sharded (ZeRO 2 and 3), else once.
bool StageGroup::per_round() const { return !TraitsOf(context_.view.schedule).by_ministage && stage_.plan->zero_stage >= 2; }

std::vector<Part> StageGroup::Cut(const Part& part, int64_t most) {
  std::vector<Part> pieces;
  if (part.head) pieces.push_back({false, part.first_layer + part.layers, 0, true});
  const int64_t groups = std::min(most, part.layers);
  for (int64_t g = groups; g > 0; --g) {
    const int64_t begin = part.layers * (g - 1) / groups, end = part.layers * g / groups;
    pieces.push_back({false, part.first_layer + begin, end - begin, false});
  }
  if (part.embedding) pieces.push_back({true, part.first_layer, 0, false});
  return pieces;
}

void StageGroup::MakePieces() {
  const int64_t most = std::max<int64_t>(1, kPieces / static_cast<int64_t>(work_.chunks.size()));
  for (const Chunk& chunk : work_.chunks) {
    pieces_.push_back(Cut(chunk.part, most));
    std::vector<Part> round = {chunk.part};
    if (work_.residency == Residency::kPerMicrobatch && chunk.part.units() > 1) {
      const auto [rest, last] = SplitLast(chunk.part, true);
      round = Cut(rest, kRoundPieces);
      round.push_back(last);
    }
    round_pieces_.push_back(std::move(round));
  }
}

bool StageGroup::IsFinal(int actor, const StepOp& op) const {
  const int64_t count = context_.view.actors[actor].count();
  return op.last == (per_round() ? rounds_ : count);
}

bool StageGroup::Ready(bool backward, int chunk) const {
  if (work_.residency != Residency::kInTurn) return true;
  const int chunks = static_cast<int>(work_.chunks.size());
  const bool stays = backward && (chunk >= chunks - 2 || (work_.keeps_embedding && chunk == 0));
  return written_[backward && !stays ? 1 : 0][chunk];
}

ChunkInputs StageGroup::Use(bool backward, const StepOp& op) {
  ChunkInputs inputs;
  const size_t c = static_cast<size_t>(op.chunk);
  const bool one_buffer = TraitsOf(context_.view.schedule).by_ministage && stage_.plan->zero_stage >= 2;
  if (backward && one_buffer && op.first == 0) inputs.gradients = reduced_[BufferOf(op.chunk)];
  if (work_.residency == Residency::kResident) return inputs;
  const Gathered* gathered = nullptr;
  if (work_.residency == Residency::kInTurn) {
    const size_t pass = backward && written_[1][c] ? 1 : 0;
    gathered = &in_turn_[pass][c];
    // Paid once, before the first microbatch of the pass that the gather was for.
    if (op.first == 0 && pass == (backward ? 1u : 0u)) inputs.exposed_seconds = gathered->exposed_seconds;
  } else {
    const auto [at, added] = per_use_.try_emplace({backward, op.chunk, op.first});
    if (added) {
      at->second = GatherForUse(backward, work_.chunks[c].part);
      Flush();
    }
    gathered = &at->second;
    inputs.exposed_seconds = gathered->exposed_seconds;
  }
  inputs.first = gathered->first;
  inputs.rest = gathered->rest;
  return inputs;
}

StageGroup::Gathered StageGroup::GatherForUse(bool backward, const Part& part) {
  Gathered gathered;
  if (part.units() == 1) {
    gathered.first = gathered.rest = Gather(part, released_, &gathered.exposed_seconds);
    return gathered;
  }
  const auto [rest, first] = SplitLast(part, !backward);  // what one pass computes first, the other computes last
  gathered.first = Gather(first, released_, &gathered.exposed_seconds);
  gathered.rest = Gather(rest, gathered.first, &gathered.exposed_seconds);
  return gathered;
}

IndexList StageGroup::Gather(const Part& part, const IndexList& after, double* exposed_seconds) {
  IndexList inputs = Fetch(part, after);
  if (!gathers()) return inputs;
  const int flow = context_.flows.Group(stage_index_, Collective::kAllGather, Elements(part));
  *exposed_seconds += (1 - context_.overlap()) * context_.writer.SecondsAlone(flow);
  return {context_.writer.AddTransfer(TaskKind::kGather, context_.CollectiveLanes(stage_index_), flow, 1, std::move(inputs),
                                      {context_.TagOf(part), -1})};
}

// Each actor its own part from host memory; without offload nothing but `after`.
IndexList StageGroup::Fetch(const Part& part, const IndexList& after) {
  if (!stage_.offload_parameters) return after;
  IndexList tasks;
  const auto bytes = static_cast<double>(Elements(part) * context_.setting.costs.element_bytes());
  for (const int a : stage_.actors) {
    const ActorView& actor = context_.view.actors[a];
    double share = 0;
    bool fetches = false;
    for (int r = 0; r < actor.ranks_per_unit; ++r) {
      const RankView& rank = context_.view.ranks[actor.first_rank + r];
      fetches |= rank.plan->offload_parameters;
      share = std::max(share, stage_.plan->zero_stage == 0 ? rank.plan->tp_share : rank.share);
    }
    if (!fetches || share <= 0) continue;
    tasks.push_back(context_.writer.AddTransfer(TaskKind::kPrefetch, {LaneIndex(a, Lane::kCopy)},
                                                context_.flows.FromHost(a, share * bytes), 1, after, {context_.TagOf(part), -1}));
  }
  return tasks.empty() ? after : tasks;
}

void StageGroup::WriteGather(bool backward, int chunk) {
  const size_t c = static_cast<size_t>(chunk), pass = backward ? 1 : 0;
  Gathered& gathered = in_turn_[pass][c];
  gathered.first = gathered.rest = Gather(work_.chunks[c].part, freed_[BufferOf(chunk)], &gathered.exposed_seconds);
  written_[pass][c] = true;
}

void StageGroup::Forwarded(int chunk, bool all, int32_t task) {
  if (work_.residency != Residency::kInTurn || !all) return;
  Waiting& waiting = forward_[chunk];
  waiting.tasks[0].push_back(task);
  if (--waiting.actors > 0) return;
  const int chunks = static_cast<int>(work_.chunks.size());
  const bool stays = chunk >= chunks - 2 || (work_.keeps_embedding && chunk == 0);
  if (stays) return;
  freed_[BufferOf(chunk)] = waiting.tasks[0];
  if (!written_[0][static_cast<size_t>(chunk) + 2]) WriteGather(false, chunk + 2);
}

void StageGroup::Backwarded(const StepOp& op, bool final, const IndexList& tasks) {
  const size_t c = static_cast<size_t>(op.chunk);
  if (final) {
    Waiting& waiting = final_[c];
    for (size_t i = 0; i < tasks.size(); ++i) waiting.tasks[i].push_back(tasks[i]);
    if (--waiting.actors == 0) Complete(op.chunk, waiting);
    return;
  }
  if (!per_round() || !stage_.shared()) return;
  const auto [at, added] = rounds_waiting_.try_emplace({op.chunk, op.first});
  Waiting& waiting = at->second;
  if (added) {
    waiting.tasks.resize(tasks.size());
    for (const int a : stage_.actors) waiting.actors += context_.view.actors[a].count() > op.first ? 1 : 0;
  }
  for (size_t i = 0; i < tasks.size(); ++i) waiting.tasks[i].push_back(tasks[i]);
  if (--waiting.actors > 0) return;
  Flush();
  for (size_t i = 0; i < tasks.size(); ++i) held_back_.push_back({round_pieces_[c][i], waiting.tasks[i]});
  const HeldBack last = held_back_.back();
  if (work_.residency == Residency::kPerMicrobatch) held_back_.pop_back();
  Flush();
  if (work_.residency == Residency::kPerMicrobatch) held_back_.push_back(last);
  rounds_waiting_.erase(at);
}

void StageGroup::Flush() {
  for (HeldBack& held : std::exchange(held_back_, {})) Reduce(held.part, std::move(held.after));
}

// Sums the part's gradients over the units; -1 where there is nothing to sum.
int32_t StageGroup::Reduce(const Part& part, IndexList after) {
  const bool sharded = stage_.plan->zero_stage > 0;
  const int flow =
      context_.flows.Group(stage_index_, sharded ? Collective::kReduceScatter : Collective::kAllReduce, Elements(part));
  const double exposed = (1 - context_.overlap()) * context_.writer.SecondsAlone(flow);
  for (const int a : stage_.actors) context_.owed_seconds[a] += exposed;
  return context_.writer.AddTransfer(sharded ? TaskKind::kReduceScatter : TaskKind::kAllReduce,
                                     context_.CollectiveLanes(stage_index_), flow, 1, std::move(after),
                                     {context_.TagOf(part), -1});
}

// All actors have the chunk's gradients: the next gather, then the reductions.
void StageGroup::Complete(int chunk, const Waiting& waiting) {
  const size_t c = static_cast<size_t>(chunk);
  const int buffer = BufferOf(chunk);
  if (work_.residency == Residency::kInTurn) {
    freed_[buffer] = waiting.tasks.back();
    if (chunk >= 2 && !(work_.keeps_embedding && chunk == 2)) WriteGather(true, chunk - 2);
  }
  Flush();
  IndexList all;
  for (size_t i = 0; i < pieces_[c].size(); ++i) {
    IndexList tasks = waiting.tasks[i];
    if (stage_.shared()) tasks = {Reduce(pieces_[c][i], std::move(tasks))};
    if (stage_.shared()) reduced_[buffer] = tasks.front();
    all.insert(all.end(), tasks.begin(), tasks.end());
    end_->Reduced(stage_index_, pieces_[c][i], std::move(tasks));
  }
  // The head's part of a tied embedding's gradient frees the buffer for the embedding's own.
  if (work_.keeps_embedding && work_.chunks[c].part.head) reduced_[2] = Reduce({true, 0, 0, false}, waiting.tasks[0]);
  if (end_->Interleaved(stage_index_)) end_->Defer(stage_index_, chunk, Elements(work_.chunks[c].part), all);
}

}  // namespace motley::planner
