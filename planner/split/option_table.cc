#include "planner/split/option_table.h"

#include <algorithm>
#include <tuple>

#include "planner/util/infinity.h"

namespace motley::planner {
namespace {

// Whether what microbatches keep depends on their samples alone, not on how these are cut.
bool IsProportional(const std::vector<MemoryTerm>& terms) {
  for (const MemoryTerm& term : terms) {
    for (size_t m = 2; m < term.each.size(); ++m) {
      if (term.each[m] != static_cast<int64_t>(m) * term.each[1]) return false;
    }
  }
  return true;
}

bool Dominates(const Option& a, const Option& b) {
  return a.forward <= b.forward && a.backward <= b.backward && a.bytes <= b.bytes;
}

}  // namespace

int64_t ActivationBytes(const SplitKind& kind, bool recompute, int64_t batch, int64_t microbatch) {
  if (batch == 0) return 0;
  const int64_t size = std::min(batch, microbatch), full = std::min(batch / size, kind.in_flight);
  const size_t m = static_cast<size_t>(size);
  // The smaller last microbatch lives beside the others while there are few.
  const size_t rest = full < kind.in_flight ? static_cast<size_t>(batch % size) : 0;
  int64_t peak = 0;
  for (const MemoryTerm& term : recompute ? kind.recompute_terms : kind.keep_terms) {
    peak = std::max(peak, full * term.each[m] + term.each[rest] + term.once[m]);
  }
  return peak;
}

OptionTable::OptionTable(const SplitKind& kind, int64_t batch) : kind_(&kind), sizes_(kind.sizes) {
  const int64_t largest = std::min(kind.largest_size(), batch);
  every_size_ = sizes_.empty();
  if (every_size_) {
    for (int64_t m = 1; m <= largest; ++m) sizes_.push_back(m);
  }
  while (!sizes_.empty() && sizes_.back() > largest) sizes_.pop_back();
  if (kind.allow_keep) policies_.push_back({false, &kind.backward_seconds, {}});
  if (kind.allow_recompute) policies_.push_back({true, &kind.recompute_seconds, {}});
  small_is_frugal_ = true;
  for (Policy& policy : policies_) {
    small_is_frugal_ = small_is_frugal_ && IsProportional(policy.recompute ? kind.recompute_terms : kind.keep_terms);
    int64_t room = batch;
    for (const int64_t m : sizes_) {
      room = RoomFor(policy.recompute, m, small_is_frugal_ ? room : batch);
      policy.room.push_back(room);
      limit_ = std::max(limit_, room);
    }
  }
}

// Largest batch up to `most` that the memory holds in microbatches of m. Gallops down from there: it is mostly close.
int64_t OptionTable::RoomFor(bool recompute, int64_t m, int64_t most) const {
  const auto fits = [&](int64_t b) { return ActivationBytes(*kind_, recompute, b, m) <= kind_->capacity_bytes; };
  if (fits(most)) return most;
  int64_t low = 0, high = most;  // low fits, high does not
  for (int64_t step = 1; high - step > 0; step *= 2) {
    if (fits(high - step)) {
      low = high - step;
      break;
    }
    high -= step;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

double OptionTable::TimeOf(const std::vector<double>& times, size_t size, int64_t batch) const {
  const int64_t m = sizes_[size];
  return static_cast<double>(batch / m) * times[m] + times[batch % m];
}

int64_t OptionTable::LargestWithin(const std::vector<double>& times, size_t size, double bound, bool strictly,
                                   int64_t limit) const {
  const auto within = [&](double seconds) { return strictly ? seconds < bound : seconds <= bound; };
  const int64_t m = sizes_[size], most = limit / m;
  const double whole = times[m];
  if (!within(0)) return 0;
  // Guessed by division, corrected by the products that are compared.
  int64_t full = whole > 0 && bound / whole < static_cast<double>(most) ? static_cast<int64_t>(bound / whole) : most;
  while (full > 0 && !within(static_cast<double>(full) * whole)) --full;
  while (full < most && within(static_cast<double>(full + 1) * whole)) ++full;
  const double base = static_cast<double>(full) * whole;
  int64_t low = 0, high = std::min(m - 1, limit - full * m);
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (within(base + times[middle])) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return full * m + low;
}

size_t OptionTable::SizesFor(int64_t batch) const {
  return every_size_ ? std::min(sizes_.size(), static_cast<size_t>(batch)) : sizes_.size();
}

const OptionTable::Column& OptionTable::ColumnOf(int64_t batch) {
  const size_t at = static_cast<size_t>(batch);
  if (columns_.size() <= at) columns_.resize(at + 1);
  Column& column = columns_[at];
  if (column.made) return column;
  column.made = true;
  auto& front = column.front;
  for (const Policy& policy : policies_) {
    // Large sizes first: they are mostly the fastest and leave the front short.
    for (size_t i = SizesFor(batch); i-- > 0;) {
      if (policy.room[i] < batch) continue;
      const double forward = TimeOf(kind_->forward_seconds, i, batch), backward = TimeOf(*policy.backward, i, batch);
      if (std::any_of(front.begin(), front.end(), [&](const auto& t) { return t.first <= forward && t.second <= backward; }))
        continue;
      const auto beaten = [&](const auto& t) { return forward <= t.first && backward <= t.second; };
      front.erase(std::remove_if(front.begin(), front.end(), beaten), front.end());
      front.push_back({forward, backward});
    }
  }
  return column;
}

bool OptionTable::IsWithin(int64_t batch) {
  for (const auto& [forward, backward] : ColumnOf(batch).front) {
    if (forward <= forward_bound_ && backward <= backward_bound_) return true;
  }
  return false;
}

// Gallops from the last answer: bounds that follow each other mostly lie close together.
int64_t OptionTable::Bound(double forward_bound, double backward_bound) {
  forward_bound_ = forward_bound;
  backward_bound_ = backward_bound;
  int64_t low = 0, high = limit_ + 1, step = 1;  // low is within, high is not
  if (reach_ > 0 && !IsWithin(reach_)) {
    high = reach_;
    for (; high - step > 0; step *= 2) {
      if (IsWithin(high - step)) {
        low = high - step;
        break;
      }
      high -= step;
    }
  } else {
    low = reach_;
    for (; low + step < high; step *= 2) {
      if (!IsWithin(low + step)) {
        high = low + step;
        break;
      }
      low += step;
    }
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (IsWithin(middle) ? low : high) = middle;
  }
  return reach_ = low;
}

int64_t OptionTable::LeastBytes(int64_t batch) const {
  if (batch == 0) return 0;
  int64_t least = INT64_MAX;
  for (const Policy& policy : policies_) {
    for (size_t i = 0; i < SizesFor(batch); ++i) {
      if (policy.room[i] < batch || TimeOf(kind_->forward_seconds, i, batch) > forward_bound_ ||
          TimeOf(*policy.backward, i, batch) > backward_bound_) {
        continue;
      }
      least = std::min(least, ActivationBytes(*kind_, policy.recompute, batch, sizes_[i]));
      if (small_is_frugal_) break;
    }
  }
  return least;
}

void OptionTable::Staircase(std::vector<int64_t>* bytes) {
  bytes->assign(static_cast<size_t>(reach_) + 1, INT64_MAX);
  (*bytes)[0] = 0;
  for (const Policy& policy : policies_) {
    if (!small_is_frugal_) break;
    int64_t done = 0;
    for (size_t i = 0; i < sizes_.size() && done < reach_; ++i) {
      int64_t largest = std::min(reach_, policy.room[i]);
      if (largest <= done || TimeOf(kind_->forward_seconds, i, done + 1) > forward_bound_ ||
          TimeOf(*policy.backward, i, done + 1) > backward_bound_) {
        continue;
      }
      largest = LargestWithin(kind_->forward_seconds, i, forward_bound_, false, largest);
      largest = LargestWithin(*policy.backward, i, backward_bound_, false, largest);
      for (; done < largest; ++done) {
        int64_t& least = (*bytes)[done + 1];
        least = std::min(least, ActivationBytes(*kind_, policy.recompute, done + 1, sizes_[i]));
      }
    }
  }
  for (int64_t b = 1; b <= reach_; ++b) {
    int64_t& least = (*bytes)[b];
    if (small_is_frugal_ && least < INT64_MAX) continue;
    // The first within the bounds needs least.
    for (const Option& option : Ways(b)) {
      if (option.forward > forward_bound_ || option.backward > backward_bound_) continue;
      least = option.bytes;
      break;
    }
  }
  // A batch within the bounds needs no more than a larger one; rounding may have told them apart.
  for (size_t b = bytes->size() - 1; b > 1; --b) (*bytes)[b - 1] = std::min((*bytes)[b - 1], (*bytes)[b]);
}

template <typename Function>
void OptionTable::ForTimes(Pass pass, Function function) const {
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (pass == Pass::kForward) {
      int64_t limit = 0;
      for (const Policy& policy : policies_) limit = std::max(limit, policy.room[i]);
      function(kind_->forward_seconds, i, limit);
      continue;
    }
    for (const Policy& policy : policies_) function(*policy.backward, i, policy.room[i]);
  }
}

double OptionTable::LargestTime(Pass pass, double bound, bool strictly) const {
  double largest = 0;
  ForTimes(pass, [&](const std::vector<double>& times, size_t i, int64_t limit) {
    const int64_t b = LargestWithin(times, i, bound, strictly, limit);
    if (b > 0) largest = std::max(largest, TimeOf(times, i, b));
  });
  return largest;
}

double OptionTable::NextTime(Pass pass, double bound) const {
  double next = kInfinity;
  ForTimes(pass, [&](const std::vector<double>& times, size_t i, int64_t limit) {
    const int64_t b = LargestWithin(times, i, bound, false, limit);
    if (b >= limit) return;
    const double seconds = TimeOf(times, i, b + 1);
    if (seconds > bound) next = std::min(next, seconds);
  });
  return next;
}

std::pair<double, double> OptionTable::PassRatios() const {
  double least = kInfinity, most = 0;
  for (const Policy& policy : policies_) {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (policy.room[i] == 0) continue;
      const size_t m = static_cast<size_t>(sizes_[i]);
      const double ratio = (*policy.backward)[m] / kind_->forward_seconds[m];
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
  }
  return {least, most};
}

const std::vector<Option>& OptionTable::Ways(int64_t batch) {
  const auto [at, added] = ways_.try_emplace(batch);
  std::vector<Option>& front = at->second;
  if (!added) return front;
  if (batch == 0) {
    front.push_back({});
    return front;
  }
  std::vector<Option> all;
  for (const Policy& policy : policies_) {
    for (size_t i = 0; i < SizesFor(batch); ++i) {
      if (policy.room[i] < batch) continue;
      const int64_t bytes = ActivationBytes(*kind_, policy.recompute, batch, sizes_[i]);
      all.push_back(
          {TimeOf(kind_->forward_seconds, i, batch), TimeOf(*policy.backward, i, batch), bytes, sizes_[i], policy.recompute});
    }
  }
  std::sort(all.begin(), all.end(), [](const Option& x, const Option& y) {
    return std::tie(x.bytes, x.forward, x.backward, x.microbatch, x.recompute) <
           std::tie(y.bytes, y.forward, y.backward, y.microbatch, y.recompute);
  });
  for (const Option& option : all) {
    // The newest survivors are the likeliest to dominate.
    if (std::none_of(front.rbegin(), front.rend(), [&](const Option& o) { return Dominates(o, option); }))
      front.push_back(option);
  }
  return front;
}

}  // namespace motley::planner
