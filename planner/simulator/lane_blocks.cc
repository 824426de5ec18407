#include "planner/simulator/lane_blocks.h"

#include <algorithm>
#include <array>

namespace motley::planner {
namespace {

constexpr double kCell = 0.5;  // pixels

// Cells between two wide tasks.
class SliverDrawer {
 public:
  explicit SliverDrawer(std::vector<LaneBlock>* blocks) : blocks_(blocks) {}

  void Add(double begin, double end, TaskKind kind) { pieces_.push_back({begin, end, kind}); }

  // Draws what was added; no block reaches beyond `limit`.
  void Draw(double limit) {
    if (pieces_.empty()) return;
    size_t piece = 0;
    for (double cell = pieces_.front().begin; cell < pieces_.back().end; cell += kCell) {
      const double cell_end = std::min({cell + kCell, limit, std::max(cell, pieces_.back().end)});
      const double size = cell_end - cell;
      if (size <= 0) break;
      double filled = 0;
      for (size_t p = piece; p < pieces_.size() && pieces_[p].begin < cell_end; ++p) {
        const double part = std::min(pieces_[p].end, cell_end) - std::max(pieces_[p].begin, cell);
        if (part > 0) {
          owed_[static_cast<size_t>(pieces_[p].kind)] += part;
          filled += part;
        }
        if (pieces_[p].end <= cell_end) piece = p + 1;
      }
      owed_idle_ += size - filled;
      const auto most = std::max_element(owed_.begin(), owed_.end());
      if (*most <= owed_idle_) {
        owed_idle_ -= size;
        continue;
      }
      *most -= size;
      Emit(cell, cell_end, static_cast<TaskKind>(most - owed_.begin()));
    }
    pieces_.clear();
  }

 private:
  struct Piece {
    double begin, end;
    TaskKind kind;
  };
  // Neighbours of a kind become one block.
  void Emit(double begin, double end, TaskKind kind) {
    if (!blocks_->empty()) {
      LaneBlock& last = blocks_->back();
      if (last.task < 0 && last.kind == kind && begin - last.end < 1e-9) {
        last.end = end;
        return;
      }
    }
    blocks_->push_back({begin, end, kind, -1});
  }
  std::vector<LaneBlock>* blocks_;
  std::vector<Piece> pieces_;
  std::array<double, kNumTaskKinds> owed_{};  // pixels of each kind that are not drawn yet
  double owed_idle_ = 0;
};

}  // namespace

std::vector<LaneBlock> BlocksOfLane(const StepGraph& graph, const Timeline& timeline, const std::vector<int32_t>& tasks,
                                    double width) {
  std::vector<LaneBlock> blocks;
  SliverDrawer slivers(&blocks);
  const double scale = timeline.end > 0 ? width / static_cast<double>(timeline.end) : 0;
  for (const int32_t t : tasks) {
    const TaskSpan& span = timeline.spans[t];
    const TaskKind kind = graph.tasks[t].kind;
    const double begin = scale * static_cast<double>(span.begin), end = scale * static_cast<double>(span.end);
    if (end <= begin) continue;
    if (end - begin < kCell) {
      slivers.Add(begin, end, kind);
      continue;
    }
    slivers.Draw(begin);
    blocks.push_back({begin, end, kind, t});
  }
  slivers.Draw(width);
  return blocks;
}

}  // namespace motley::planner
