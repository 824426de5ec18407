#include "worker/engine/profiler/soak.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/model/unit_bench.h"
#include "worker/engine/profiler/timed_runs.h"

namespace motley::engine {
namespace {

// Between two batches the device has nothing to do for a moment, which is nothing beside this.
constexpr absl::Duration kLeastBatch = absl::Milliseconds(200);
constexpr int kMostPasses = 4096;  // of a batch

class Load {
 public:
  explicit Load(const ProfiledRank& rank)
      : rank_(rank), most_samples_(std::max<int64_t>(1, rank.assignment.config.training.global_batch_size)) {
    Do([this] {
      bench_.emplace(rank_.whole, rank_.whole.shape(), rank_.assignment.config.training.seq_len, rank_.precision,
                     rank_.backend.tensors(), UnitKind::kLayer);
    });
  }

  // What it took of the device's time. The next one is larger until it takes long enough.
  absl::Duration Batch() {
    const absl::Duration took = Passes();
    if (took >= kLeastBatch) return took;
    if (2 * samples_ > most_samples_) {
      passes_ = std::min(2 * passes_, kMostPasses);
    } else if (Prepare(2 * samples_)) {
      samples_ *= 2;
    } else {
      most_samples_ = samples_;
      (void)Prepare(samples_);
    }
    return took;
  }

  // False: there is no memory for so many.
  bool Prepare(int64_t samples) {
    try {
      Do([this, samples] {
        bench_->Prepare(samples);
        Pass();
      });
      return true;
    } catch (const c10::OutOfMemoryError&) {
      bench_->Clear();
      return false;
    }
  }

 private:
  void Do(std::function<void()> work) {
    LaneTimer timer(rank_.backend.StreamOf(Lane::kCompute), rank_.pacer);
    timer.Run([&work] {
      work();
      return absl::OkStatus();
    });
    Check(timer.Await());
  }

  void Pass() {
    bench_->Forward();
    bench_->Backward();
  }

  absl::Duration Passes() {
    LaneTimer timer(rank_.backend.StreamOf(Lane::kCompute), rank_.pacer);
    std::vector<LaneTime> times;
    for (int i = 0; i < passes_; ++i) {
      times.push_back(timer.Measure(std::nullopt, [this] {
        Pass();
        return absl::OkStatus();
      }));
    }
    Check(timer.Await());
    return times.back().end() - times.front().begin();
  }

  const ProfiledRank& rank_;
  int64_t most_samples_;
  std::optional<UnitBench> bench_;
  int64_t samples_ = 1;
  int passes_ = 1;
};

}  // namespace

void Soak(const ProfiledRank& rank) {
  const absl::Duration length = rank.backend.soak();
  if (length <= absl::ZeroDuration() || rank.backend.StreamOf(Lane::kCompute) == nullptr) return;
  Load load(rank);
  if (!load.Prepare(1)) return;
  const absl::Duration end = rank.time.Now() + length;
  for (absl::Duration worked; worked < length && rank.time.Now() < end;) {
    worked += load.Batch();
    rank.pacer.Beat();
  }
}

}  // namespace motley::engine
