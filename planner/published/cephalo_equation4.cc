#include "planner/published/cephalo_equation4.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/split/table_growth.h"
#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

struct Way {
  SplitChoice choice;
  double seconds = 0;  // T
};

class Equation4 {
 public:
  explicit Equation4(const SplitProblem& problem) : problem_(problem), devices_(CountDevices(problem)) {
    for (const SplitKind& kind : problem.kinds) ways_.push_back(WaysOf(kind));
  }

  Equation4Answer Solve() {
    Equation4Answer answer;
    std::vector<double> times;
    for (const auto& by_batch : ways_) {
      for (const auto& ways : by_batch) {
        for (const Way& way : ways) times.push_back(way.seconds);
      }
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    if (times.empty() || !Fits(times.back())) {
      const int64_t least = times.empty() ? kImpossible : LeastBytes(times.back());
      answer.split.missing_bytes = least == kImpossible ? 0 : least - Room();
      return answer;
    }
    const auto found = std::partition_point(times.begin(), times.end(), [&](double t) { return !Fits(t); });
    answer.printed_seconds = *found;
    LeastBytes(*found);
    Backtrack(*found, &answer.split);
    return answer;
  }

 private:
  static constexpr int64_t kImpossible = INT64_MAX / 4;

  // All devices' memory less the state (constraint III).
  int64_t Room() const {
    int64_t room = -problem_.state_bytes;
    for (const SplitKind& kind : problem_.kinds) room += kind.capacity_bytes * kind.count;
    return room;
  }

  double Seconds(const SplitKind& kind, const SplitChoice& choice) const {
    const int64_t even_share = problem_.state_bytes / devices_;
    const SkewLevel& level = choice.bytes + even_share > kind.capacity_bytes ? problem_.levels.back() : problem_.levels.front();
    return std::max(choice.forward_seconds, level.forward_seconds) + std::max(choice.backward_seconds, level.backward_seconds);
  }

  // By batch: whole microbatches within the memory, each less memory than the one before and slower.
  std::vector<std::vector<Way>> WaysOf(const SplitKind& kind) const {
    std::vector<std::vector<Way>> by_batch(static_cast<size_t>(problem_.batch) + 1);
    const auto add = [&](int64_t m, bool recompute) {
      const std::vector<double>& backward = recompute ? kind.recompute_seconds : kind.backward_seconds;
      const size_t size = static_cast<size_t>(m);
      for (int64_t b = m; b <= problem_.batch; b += m) {
        const double count = static_cast<double>(b / m);
        const SplitChoice choice{
            b, m, recompute, count * kind.forward_seconds[size], count * backward[size], ActivationBytes(kind, recompute, b, m)};
        if (choice.bytes > kind.capacity_bytes) break;
        by_batch[b].push_back({choice, Seconds(kind, choice)});
      }
    };
    for (int64_t m = 1; m <= std::min(kind.largest_size(), problem_.batch); ++m) {
      if (!kind.sizes.empty() && !std::binary_search(kind.sizes.begin(), kind.sizes.end(), m)) continue;
      if (kind.allow_keep) add(m, false);
      if (kind.allow_recompute) add(m, true);
    }
    for (std::vector<Way>& ways : by_batch) {
      std::sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
        return std::tie(a.seconds, a.choice.bytes, a.choice.microbatch) <
               std::tie(b.seconds, b.choice.bytes, b.choice.microbatch);
      });
      size_t kept = 0;
      for (const Way& way : ways) {
        if (kept == 0 || way.choice.bytes < ways[kept - 1].choice.bytes) ways[kept++] = way;
      }
      ways.resize(kept);
    }
    return by_batch;
  }

  // The most frugal way within t; nullptr if none.
  const Way* Within(size_t kind, int64_t batch, double t) const {
    const std::vector<Way>& ways = ways_[kind][batch];
    const auto end = std::partition_point(ways.begin(), ways.end(), [t](const Way& way) { return way.seconds <= t; });
    return end == ways.begin() ? nullptr : &*(end - 1);
  }

  // What a kind's devices can take within t: every batch from the least to `run`, and `largest`.
  struct Reach {
    int64_t least = 0, run = 0, largest = 0, bytes = 0;  // the most bytes of any of them
  };
  Reach ReachOf(size_t kind, double t) const {
    Reach reach;
    reach.least = std::max<int64_t>(1, problem_.least_batch);
    reach.run = reach.least - 1;
    for (int64_t b = reach.least; b <= problem_.batch; ++b) {
      const Way* way = Within(kind, b, t);
      if (way == nullptr) continue;
      if (reach.run == b - 1) reach.run = b;
      reach.largest = b;
      reach.bytes = std::max(reach.bytes, way->choice.bytes);
    }
    return reach;
  }

  // Whether all samples and all state fit within t. Mostly the largest batches are too few, or they are enough and memory does
  // not matter: some devices take their largest, the others whatever is left. The knapsack decides the rest.
  bool Fits(double t) {
    int64_t most = 0, bytes = 0, missing = problem_.batch, slack = 0;
    std::vector<Reach> reaches;
    for (size_t k = 0; k < problem_.kinds.size(); ++k) {
      const int64_t count = problem_.kinds[k].count;
      const Reach reach = ReachOf(k, t);
      if (reach.largest == 0) return false;
      most += reach.largest * count;
      bytes += reach.bytes * count;
      missing -= reach.run * count;
      slack += (reach.run - reach.least) * count;
      reaches.push_back(reach);
    }
    if (most < problem_.batch) return false;
    for (size_t k = 0; k < reaches.size() && missing > 0; ++k) {
      const int64_t gain = reaches[k].largest - reaches[k].run;
      if (gain == 0) continue;
      const int64_t times = std::min<int64_t>(problem_.kinds[k].count, (missing + gain - 1) / gain);
      missing -= times * gain;
      slack -= times * (reaches[k].run - reaches[k].least);
    }
    if (missing <= 0 && -missing <= slack && bytes <= Room()) return true;
    return LeastBytes(t) <= Room();
  }

  // Least bytes of all devices' samples within t; picks_ receive the batches by device.
  int64_t LeastBytes(double t) {
    const size_t size = static_cast<size_t>(problem_.batch) + 1;
    std::vector<int64_t> least(size, kImpossible), next(size);
    least[0] = 0;
    picks_.clear();
    int64_t reach = 0, copies = 0;
    for (size_t k = 0; k < problem_.kinds.size(); ++k) {
      std::vector<std::pair<int64_t, int64_t>> options;  // batch, bytes
      for (int64_t b = std::max<int64_t>(1, problem_.least_batch); b <= problem_.batch; ++b) {
        if (const Way* way = Within(k, b, t)) options.push_back({b, way->choice.bytes});
      }
      for (int copy = 0; copy < problem_.kinds[k].count; ++copy) {
        std::fill(next.begin(), next.end(), kImpossible);
        std::vector<int32_t> pick(size, 0);
        for (const auto& [b, bytes] : options) {
          for (int64_t j = copies; j <= std::min(reach, problem_.batch - b); ++j) {
            const int64_t sum = least[j] + bytes;
            if (sum >= next[j + b]) continue;
            next[j + b] = sum;
            pick[j + b] = static_cast<int32_t>(b);
          }
        }
        ++copies;  // each took a sample at least
        if (!options.empty()) reach = std::min(problem_.batch, reach + options.back().first);
        least.swap(next);
        picks_.push_back(std::move(pick));
      }
    }
    return std::min(least.back(), kImpossible);
  }

  void Backtrack(double t, SplitAnswer* split) {
    split->feasible = true;
    split->choices.resize(problem_.kinds.size());
    double forward = 0, backward = 0;
    bool uneven = false;
    int64_t left = problem_.batch;
    for (size_t k = problem_.kinds.size(); k-- > 0;) {
      const SplitKind& kind = problem_.kinds[k];
      for (int copy = 0; copy < kind.count; ++copy) {
        const int64_t b = picks_.back()[left];
        picks_.pop_back();
        left -= b;
        const SplitChoice& choice = Within(k, b, t)->choice;
        split->choices[k].push_back(choice);
        forward = std::max(forward, choice.forward_seconds);
        backward = std::max(backward, choice.backward_seconds);
        uneven = uneven || choice.bytes + problem_.state_bytes / devices_ > kind.capacity_bytes;
      }
      std::stable_sort(split->choices[k].begin(), split->choices[k].end(),
                       [](const SplitChoice& a, const SplitChoice& b) { return a.batch > b.batch; });
    }
    split->level = uneven ? problem_.levels.size() - 1 : 0;
    const SkewLevel& level = problem_.levels[split->level];
    split->seconds = std::max(forward, level.forward_seconds) + std::max(backward, level.backward_seconds);
  }

  const SplitProblem& problem_;
  const int64_t devices_;
  std::vector<std::vector<std::vector<Way>>> ways_;  // by kind, batch; ascending seconds, falling bytes
  std::vector<std::vector<int32_t>> picks_;          // by device
};

}  // namespace

Equation4Answer SolveEquation4(SplitProblem* problem, int64_t largest_microbatch, const ExtendTables& extend) {
  if (CountDevices(*problem) * std::max<int64_t>(1, problem->least_batch) > problem->batch) return {};
  StartTables(*problem, largest_microbatch, extend);
  while (true) {
    Equation4Answer answer = Equation4(*problem).Solve();
    const double seconds = answer.split.feasible ? answer.printed_seconds : kInfinity;
    if (!GrowTables(*problem, largest_microbatch, seconds, extend)) return answer;
  }
}

}  // namespace motley::planner
