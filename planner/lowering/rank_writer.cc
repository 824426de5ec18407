#include "planner/lowering/rank_writer.h"

#include <algorithm>

namespace motley::planner {

int32_t RankWriter::Add(Operation op, std::initializer_list<int32_t> after) {
  const auto lane = static_cast<size_t>(LaneOf(op));
  std::vector<int32_t> needed;
  for (const int32_t a : after) {
    if (a < 0) continue;
    const auto other = static_cast<size_t>(LaneOf(program_.instructions[a].op));
    if (other == lane || waited_[lane][other] >= a) continue;
    needed.push_back(a);
  }
  // Of one lane the newest stands for all.
  std::sort(needed.begin(), needed.end());
  std::vector<int32_t> kept;
  for (size_t i = 0; i < needed.size(); ++i) {
    const auto other = static_cast<size_t>(LaneOf(program_.instructions[needed[i]].op));
    int32_t& newest = waited_[lane][other];
    newest = std::max(newest, needed[i]);
  }
  for (const int32_t a : needed) {
    const auto other = static_cast<size_t>(LaneOf(program_.instructions[a].op));
    if (waited_[lane][other] == a && (kept.empty() || kept.back() != a)) kept.push_back(a);
  }
  program_.instructions.push_back({std::move(op), std::move(kept)});
  return static_cast<int32_t>(program_.instructions.size()) - 1;
}

void RankWriter::AddGather(int32_t unit, int32_t buffer, int32_t group) {
  gathered_[buffer] = Add(Gather{unit, buffer, group}, {released_[buffer]});
}

void RankWriter::AddRelease(int32_t buffer) { released_[buffer] = Add(Release{buffer}, {gathered_[buffer]}); }

void RankWriter::AddReduce(int32_t unit, int32_t buffer, int32_t group) {
  if (fresh_[buffer]) written_[buffer] = Add(ZeroGrad{unit, buffer}, {reduced_[buffer]});
  reduced_[buffer] = Add(ReduceScatter{unit, buffer, group}, {written_[buffer]});
  fresh_[buffer] = true;
}

void RankWriter::Wrote(int32_t buffer, int32_t instruction) {
  if (buffer < 0) return;
  written_[buffer] = instruction;
  fresh_[buffer] = false;
}

}  // namespace motley::planner
