// The order of a pipeline's groups by top-tau search (HexiScale section 4.3, step iii).
#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>
#include <utility>

#include "planner/strategies/hexiscale/hexiscale_pipeline.h"
#include "planner/util/at.h"

namespace motley::planner {
namespace {

constexpr size_t kTau = 3;      // neighbours that the search follows
constexpr int kMostPaths = 24;  // orders priced in one search

}  // namespace

double PipelineDesigner::Between(const Case& c, size_t a, size_t b) const {
  double best = 0;
  for (size_t p : c.groups[a]) {
    for (size_t q : c.groups[b]) best = std::max(best, rates_[At(c.pieces[p].devices[0])][At(c.pieces[q].devices[0])]);
  }
  return best;
}

void PipelineDesigner::Extend(const Case& c, std::vector<size_t>* path, Choice* choice, double* seconds, int* paths) {
  if (*paths == 0) return;
  if (path->size() == c.groups.size()) {
    --*paths;
    Choice trial = *choice;
    trial.order = *path;
    const double t = Price(c, trial, *seconds).seconds;
    if (t < *seconds) *seconds = t, choice->order = *path;
    return;
  }
  std::vector<std::pair<double, size_t>> next;
  for (size_t g = 0; g < c.groups.size(); ++g) {
    if (std::find(path->begin(), path->end(), g) == path->end()) next.push_back({-Between(c, path->back(), g), g});
  }
  std::sort(next.begin(), next.end());
  // Groups of one piece that are alike lead to the same pipelines: the first stands for them.
  std::set<std::tuple<double, int, int, size_t>> tried;
  size_t followed = 0;
  for (const auto& [rate, g] : next) {
    const Piece& piece = c.pieces[c.groups[g][0]];
    const auto like = std::make_tuple(rate, ClassOf(piece), problem_->setting().KindOf(piece.devices[0]), piece.devices.size());
    if (c.groups[g].size() == 1 && !tried.insert(like).second) continue;
    path->push_back(g);
    Extend(c, path, choice, seconds, paths);
    path->pop_back();
    if (++followed == kTau) break;
  }
}

void PipelineDesigner::SearchOrder(const Case& c, Choice* choice, double* seconds) {
  std::set<std::tuple<int, int, size_t>> tried;
  std::vector<size_t> starts;
  for (size_t g = 0; g < c.groups.size(); ++g) {
    const Piece& piece = c.pieces[c.groups[g][0]];
    const auto like = std::make_tuple(ClassOf(piece), problem_->setting().KindOf(piece.devices[0]), piece.devices.size());
    if (c.groups[g].size() > 1 || tried.insert(like).second) starts.push_back(g);
  }
  const int each = std::max(1, kMostPaths / static_cast<int>(starts.size()));
  for (size_t start : starts) {
    std::vector<size_t> path = {start};
    int paths = each;
    Extend(c, &path, choice, seconds, &paths);
  }
}

}  // namespace motley::planner
