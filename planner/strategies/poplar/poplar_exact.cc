// Problem:    poplar_problem.h.
// Method:     Not synchronised: each kind's T(g) by CheapestCover; the least bound on all T_i under which the kinds' largest g
// add up to B
//             is found by bisection over the finitely many values of T.
//             Synchronised: a round bounded by t covers the sum of the largest batches within t; t takes finitely many values
//             (the paper's "every possible value of t"); a step is a cover of B by rounds.
// Complexity: B x mbs by kind and way; synchronised B x (sum of mbs over kinds) by combination of ways.
#include "planner/strategies/poplar/poplar_exact.h"

#include <algorithm>
#include <utility>

#include "planner/split/poplar_rounds.h"
#include "planner/strategies/poplar/poplar_cover.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

constexpr size_t kMostKindsEnumerated = 4;  // 2^4 combinations of ways

std::vector<CoverPiece> Microbatches(const PoplarTable& table) {
  std::vector<CoverPiece> pieces;
  for (size_t m = 1; m < table.size(); ++m) pieces.push_back({static_cast<int64_t>(m), table[m]});
  return pieces;
}

// A kind's least seconds for g samples, by way.
struct KindCovers {
  std::vector<CheapestCover> ways;

  size_t BestWay(int64_t g) const {
    size_t best = 0;
    for (size_t w = 1; w < ways.size(); ++w) {
      if (ways[w].Seconds(g) < ways[best].Seconds(g)) best = w;
    }
    return best;
  }
  double Seconds(int64_t g) const { return ways[BestWay(g)].Seconds(g); }
  int64_t LargestWithin(double seconds) const {
    int64_t most = 0;
    for (const CheapestCover& way : ways) {
      const std::vector<double>& all = way.seconds();
      most = std::max<int64_t>(most, std::upper_bound(all.begin(), all.end(), seconds) - all.begin() - 1);
    }
    return most;
  }
  PoplarShare Share(int64_t g) const {
    PoplarShare share;
    share.way = BestWay(g);
    int64_t rest = g;
    std::vector<size_t> pieces = ways[share.way].Pieces(g);
    for (const size_t piece : pieces) {
      // Pieces are microbatches of index + 1 samples; what they cover beyond g is taken from the last.
      const int64_t size = std::min<int64_t>(rest, static_cast<int64_t>(piece) + 1);
      if (size > 0) share.microbatches.push_back(size);
      rest -= size;
    }
    return share;
  }
};

std::vector<KindCovers> MakeCovers(const PoplarProblem& problem) {
  std::vector<KindCovers> covers(problem.kinds.size());
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    for (const PoplarTable& way : problem.kinds[k].ways) covers[k].ways.emplace_back(Microbatches(way), problem.batch);
  }
  return covers;
}

// Takes `surplus` samples away, one by one from the device that ends last. Batches by kind, then device.
void TakeSurplus(const std::vector<KindCovers>& covers, int64_t surplus, std::vector<std::vector<int64_t>>* batches) {
  for (; surplus > 0; --surplus) {
    int64_t* last = nullptr;
    double latest = -1;
    for (size_t k = 0; k < batches->size(); ++k) {
      // Devices of a kind are alike: the first of those with most samples stands for them.
      auto most = std::max_element((*batches)[k].begin(), (*batches)[k].end());
      if (most == (*batches)[k].end() || *most == 0) continue;
      const double seconds = covers[k].Seconds(*most);
      if (seconds > latest) {
        latest = seconds;
        last = &*most;
      }
    }
    if (last == nullptr) return;
    --*last;
  }
}

PoplarAnswer SolveOnce(const PoplarProblem& problem) {
  PoplarAnswer answer;
  const std::vector<KindCovers> covers = MakeCovers(problem);
  std::vector<double> bounds;
  for (const KindCovers& kind : covers) {
    for (const CheapestCover& way : kind.ways) {
      std::copy_if(way.seconds().begin(), way.seconds().end(), std::back_inserter(bounds),
                   [](double s) { return s < kInfinity; });
    }
  }
  std::sort(bounds.begin(), bounds.end());
  const auto covered = [&](double seconds) {
    int64_t sum = 0;
    for (size_t k = 0; k < covers.size(); ++k) sum += problem.kinds[k].count * covers[k].LargestWithin(seconds);
    return sum;
  };
  const auto bound =
      std::partition_point(bounds.begin(), bounds.end(), [&](double seconds) { return covered(seconds) < problem.batch; });
  if (bound == bounds.end()) return answer;

  std::vector<std::vector<int64_t>> batches;
  for (size_t k = 0; k < covers.size(); ++k) {
    batches.emplace_back(static_cast<size_t>(problem.kinds[k].count), covers[k].LargestWithin(*bound));
  }
  TakeSurplus(covers, covered(*bound) - problem.batch, &batches);
  answer.feasible = true;
  for (size_t k = 0; k < covers.size(); ++k) {
    answer.shares.emplace_back();
    for (const int64_t batch : batches[k]) {
      answer.shares[k].push_back(covers[k].Share(batch));
      answer.seconds = std::max(answer.seconds, covers[k].Seconds(batch));
    }
  }
  return answer;
}

PoplarAnswer SolveRounds(const PoplarProblem& problem, const PoplarWays& chosen) {
  std::vector<CoverPiece> pieces;
  const std::vector<double> bounds = RoundBounds(chosen);
  for (const double bound : bounds) {
    pieces.push_back({std::min(problem.batch, RoundSamples(problem, chosen, bound)), RoundSeconds(problem, bound)});
  }
  const CheapestCover cover(pieces, problem.batch);
  if (cover.Seconds(problem.batch) == kInfinity) return {};
  std::vector<PoplarRound> rounds;
  int64_t rest = problem.batch;
  for (const size_t piece : cover.Pieces(problem.batch)) {
    const int64_t samples = std::min(rest, pieces[piece].samples);
    if (samples > 0) rounds.emplace_back(bounds[piece], samples);
    rest -= samples;
  }
  return FromRounds(problem, chosen, rounds);
}

bool Improve(PoplarAnswer candidate, PoplarAnswer* best) {
  if (!candidate.feasible || (best->feasible && candidate.seconds >= best->seconds)) return false;
  *best = std::move(candidate);
  return true;
}

// All combinations of ways where they are few, else one kind at a time until nothing improves.
PoplarAnswer SolveRoundsAndWays(const PoplarProblem& problem) {
  PoplarAnswer best;
  std::vector<size_t> ways(problem.kinds.size(), 0);
  if (problem.kinds.size() <= kMostKindsEnumerated) {
    for (;;) {
      Improve(SolveRounds(problem, ChooseWays(problem, ways)), &best);
      size_t k = 0;
      while (k < ways.size() && ++ways[k] == problem.kinds[k].ways.size()) ways[k++] = 0;
      if (k == ways.size()) return best;
    }
  }
  ways = FirstWays(problem);
  Improve(SolveRounds(problem, ChooseWays(problem, ways)), &best);
  for (bool improved = true; improved;) {
    improved = false;
    for (size_t k = 0; k < ways.size(); ++k) {
      for (size_t way = 0; way < problem.kinds[k].ways.size(); ++way) {
        const size_t before = ways[k];
        ways[k] = way;
        if (way != before && Improve(SolveRounds(problem, ChooseWays(problem, ways)), &best)) {
          improved = true;
        } else {
          ways[k] = before;
        }
      }
    }
  }
  return best;
}

}  // namespace

PoplarAnswer SolvePoplarExact(const PoplarProblem& given) {
  const PoplarProblem problem = MakeMonotone(given);
  return problem.synchronise_rounds ? SolveRoundsAndWays(problem) : SolveOnce(problem);
}

}  // namespace motley::planner
