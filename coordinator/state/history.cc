#include "coordinator/state/history.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace motley::coordinator {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr HistoryBucket kEmpty = {kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone};
constexpr uint64_t kForm = 0x3174736968;  // "hist1"

constexpr int64_t kMostSteps = int64_t{1} << 50;

struct Header {
  uint64_t form;
  int64_t steps_per_bucket, last_step, buckets;
  std::array<int64_t, History::kMeans> counted;
};

constexpr std::array<float HistoryBucket::*, History::kMeans> kMeanFields = {
    &HistoryBucket::loss, &HistoryBucket::tokens_per_second, &HistoryBucket::step_seconds, &HistoryBucket::grad_norm,
    &HistoryBucket::lr};

float Narrow(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

// The mean of `mean`, which is of `*count` values, and one more. What is not finite counts for nothing.
void AddTo(float& mean, double value, int64_t* count) {
  if (!std::isfinite(value)) return;
  const double before = *count > 0 ? mean : 0;
  mean = Narrow(before + (value - before) / static_cast<double>(++*count));
}

float MeanOf(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  return a + (b - a) / 2;
}

HistoryBucket Merge(const HistoryBucket& first, const HistoryBucket& second) {
  HistoryBucket both = kEmpty;
  for (const auto mean : kMeanFields) both.*mean = MeanOf(first.*mean, second.*mean);
  both.least_loss = std::fmin(first.least_loss, second.least_loss);  // of a NaN and a number: the number
  both.most_loss = std::fmax(first.most_loss, second.most_loss);
  both.validation_loss = std::isnan(second.validation_loss) ? first.validation_loss : second.validation_loss;
  return both;
}

}  // namespace

void History::Halve() {
  if (buckets_.size() % 2 == 0 && !buckets_.empty()) {  // the last one joins its neighbour
    const HistoryBucket& neighbour = buckets_[buckets_.size() - 2];
    for (size_t i = 0; i < kMeans; ++i) counted_[i] += std::isnan(neighbour.*kMeanFields[i]) ? 0 : steps_per_bucket_;
  }
  for (size_t i = 0; i < buckets_.size(); i += 2) {
    buckets_[i / 2] = i + 1 < buckets_.size() ? Merge(buckets_[i], buckets_[i + 1]) : buckets_[i];
  }
  buckets_.resize((buckets_.size() + 1) / 2);
  steps_per_bucket_ *= 2;
}

void History::GoBackTo(int64_t step) {
  const size_t bucket = BucketOf(step);
  const int64_t before = (step - 1) % steps_per_bucket_;  // steps of the bucket that stay
  const bool is_last = bucket + 1 == buckets_.size();
  buckets_.resize(bucket + 1, kEmpty);
  if (before == 0) buckets_.back() = kEmpty;
  buckets_.back().validation_loss = kNone;  // whose step it was, nobody knows
  for (size_t i = 0; i < kMeans; ++i) {
    if (!is_last) counted_[i] = std::isnan(buckets_.back().*kMeanFields[i]) ? 0 : before;
    counted_[i] = std::min(counted_[i], before);
  }
}

void History::Add(const StepStats& step) {
  if (step.step < 1 || step.step > kMostSteps) return;
  while (BucketOf(step.step) >= kMostBuckets) Halve();
  if (step.step <= last_step_) GoBackTo(step.step);
  if (const size_t bucket = BucketOf(step.step); bucket >= buckets_.size()) {
    buckets_.resize(bucket + 1, kEmpty);
    counted_ = {};
  }
  HistoryBucket& into = buckets_.back();
  const std::array<double, kMeans> values = {step.loss, step.tokens_per_second, step.step_seconds, step.grad_norm, step.lr};
  for (size_t i = 0; i < kMeans; ++i) AddTo(into.*kMeanFields[i], values[i], &counted_[i]);
  if (std::isfinite(step.loss)) {
    into.least_loss = std::fmin(into.least_loss, Narrow(step.loss));
    into.most_loss = std::fmax(into.most_loss, Narrow(step.loss));
  }
  if (step.validation_loss && std::isfinite(*step.validation_loss)) into.validation_loss = Narrow(*step.validation_loss);
  last_step_ = step.step;
}

std::string History::ToBytes() const {
  const Header header = {kForm, steps_per_bucket_, last_step_, static_cast<int64_t>(buckets_.size()), counted_};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(buckets_.data()), buckets_.size() * sizeof(HistoryBucket));
  return bytes;
}

absl::StatusOr<History> History::FromBytes(std::string_view bytes) {
  Header header{};
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  const bool fits = header.form == kForm && header.buckets >= 0 && header.buckets <= static_cast<int64_t>(kMostBuckets) &&
                    bytes.size() == sizeof(header) + static_cast<size_t>(header.buckets) * sizeof(HistoryBucket);
  const int64_t width =
      fits && header.steps_per_bucket >= 1 && header.steps_per_bucket <= kMostSteps ? header.steps_per_bucket : 0;
  const int64_t least = width == 0 || header.buckets == 0 ? 0 : (header.buckets - 1) * width + 1;
  const auto counts = [width](int64_t count) { return count >= 0 && count <= width; };
  const bool sound = width > 0 && header.last_step >= least && header.last_step <= (width == 0 ? 0 : header.buckets * width) &&
                     std::all_of(header.counted.begin(), header.counted.end(), counts);
  if (!sound) return absl::DataLossError(absl::StrCat("a history of ", bytes.size(), " bytes is not one that was stored"));
  History history;
  history.steps_per_bucket_ = header.steps_per_bucket;
  history.last_step_ = header.last_step;
  history.counted_ = header.counted;
  history.buckets_.resize(static_cast<size_t>(header.buckets), kEmpty);
  if (header.buckets > 0) std::memcpy(history.buckets_.data(), bytes.data() + sizeof(header), bytes.size() - sizeof(header));
  return history;
}

}  // namespace motley::coordinator
