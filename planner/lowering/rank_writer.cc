#include "planner/lowering/rank_writer.h"

#include <algorithm>

namespace motley::planner {

int32_t RankWriter::Add(Operation op, std::initializer_list<int32_t> after) {
  const auto lane = static_cast<size_t>(LaneOf(op));
  std::array<int32_t, kNumLanes> newest;  // of a lane the newest stands for all
  newest.fill(-1);
  for (const int32_t a : after) {
    if (a < 0) continue;
    int32_t& of_lane = newest[static_cast<size_t>(LaneOf(program_.instructions[a].op))];
    of_lane = std::max(of_lane, a);
  }
  std::vector<int32_t> kept;
  for (size_t other = 0; other < kNumLanes; ++other) {
    if (other == lane || newest[other] <= waited_[lane][other]) continue;
    waited_[lane][other] = newest[other];
    kept.push_back(newest[other]);
  }
  std::sort(kept.begin(), kept.end());
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
