#include "planner/strategies/option_table.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace motley::planner {
namespace {

bool Dominates(const Option& a, const Option& b) {
  return a.forward <= b.forward && a.backward <= b.backward && a.bytes <= b.bytes;
}

// Keeps the set free of dominated options; of equal ones the first.
void Insert(const Option& option, std::vector<Option>* front) {
  // The newest survivors are the likeliest to dominate: microbatches come in ascending order.
  for (size_t i = front->size(); i-- > 0;) {
    if (Dominates((*front)[i], option)) return;
  }
  std::erase_if(*front, [&option](const Option& o) { return Dominates(option, o); });
  front->push_back(option);
}

}  // namespace

OptionTable::OptionTable(const SplitKind& kind, int64_t limit)
    : limit_(limit), count_(kind.count), capacity_(kind.capacity_bytes) {
  std::vector<Option> front;
  starts_ = {0};
  options_.push_back({});
  starts_.push_back(1);
  for (int64_t b = 1; b <= limit; ++b) {
    front.clear();
    for (int64_t m = 1; m <= b; ++m) {
      const size_t mi = static_cast<size_t>(m), rest = static_cast<size_t>(b % m);
      const double full = static_cast<double>(b / m);
      const double forward = full * kind.forward_seconds[mi] + kind.forward_seconds[rest];
      const auto offer = [&](bool recompute, const std::vector<double>& seconds, const std::vector<MemoryTerm>& terms) {
        const double backward = full * seconds[mi] + seconds[rest];
        const int64_t bytes = PeakOfTerms(terms, b, m);
        if (bytes <= capacity_) Insert({forward, backward, bytes, static_cast<int32_t>(m), recompute}, &front);
      };
      if (kind.allow_keep) offer(false, kind.backward_seconds, kind.keep_terms);
      if (kind.allow_recompute) offer(true, kind.recompute_seconds, kind.recompute_terms);
    }
    std::sort(front.begin(), front.end(), [](const Option& x, const Option& y) {
      return std::tie(x.bytes, x.forward, x.backward, x.microbatch) < std::tie(y.bytes, y.forward, y.backward, y.microbatch);
    });
    options_.insert(options_.end(), front.begin(), front.end());
    starts_.push_back(options_.size());
  }
  const size_t size = static_cast<size_t>(limit) + 1;
  forward_floor_.assign(size, 0);
  backward_floor_.assign(size, 0);
  double forward = std::numeric_limits<double>::infinity(), backward = forward;
  for (int64_t b = limit; b >= 0; --b) {
    for (const Option& o : Ways(b)) {
      forward = std::min(forward, o.forward);
      backward = std::min(backward, o.backward);
    }
    forward_floor_[static_cast<size_t>(b)] = forward;
    backward_floor_[static_cast<size_t>(b)] = backward;
  }
}

int64_t OptionTable::LargestBatch(double forward_bound, double backward_bound) const {
  const auto by_forward = std::upper_bound(forward_floor_.begin(), forward_floor_.end(), forward_bound) - forward_floor_.begin();
  const auto by_backward =
      std::upper_bound(backward_floor_.begin(), backward_floor_.end(), backward_bound) - backward_floor_.begin();
  return std::min<int64_t>(by_forward, by_backward) - 1;
}

SampleRates LeastSecondsPerSample(const SplitKind& kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  SampleRates least{kInfinity, kInfinity, kInfinity};
  for (size_t m = 1; m < kind.forward_seconds.size(); ++m) {
    const double forward = kind.forward_seconds[m], samples = static_cast<double>(m);
    const double backward = std::min(kind.allow_keep ? kind.backward_seconds[m] : kInfinity,
                                     kind.allow_recompute ? kind.recompute_seconds[m] : kInfinity);
    least.forward = std::min(least.forward, forward / samples);
    least.backward = std::min(least.backward, backward / samples);
    least.both = std::min(least.both, (forward + backward) / samples);
  }
  return least;
}

}  // namespace motley::planner
