#include "worker/engine/profiler/unit_profiler.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "worker/engine/base/torch_pch.h"
#include "worker/engine/lanes/lane_timer.h"
#include "worker/engine/model/instruction_flops.h"
#include "worker/engine/model/unit_bench.h"
#include "worker/engine/profiler/point_seconds.h"
#include "worker/engine/profiler/rough_points.h"
#include "worker/engine/profiler/timed_runs.h"
#include "worker/engine/profiler/unit_time.h"

namespace motley::engine {
namespace {

constexpr int kMostRounds = 3;  // of points that are repeated
// A card's clocks rise while it waits for the host between two series: the runs that count are so many that the one in the middle
// is none of the first.
constexpr double kLeastSecondsOfRuns = 0.1;
constexpr double kMostRepeats = 100;

// One instruction, and where its time belongs; null: it only makes what the next ones need.
struct Piece {
  Operation op;
  double ComputePoint::*seconds = nullptr;
};

// Instructions that follow each other, on inputs of their own.
struct Series {
  UnitBench* bench = nullptr;
  ModelSlice slice;  // that the bench is of
  std::vector<Piece> pieces;
  bool counts_bytes = false;
};

template <typename Op>
Op OpOf(int64_t unit, UnitSegment segment = UnitSegment::kWhole) {
  Op op{};
  op.unit = static_cast<int32_t>(unit);
  op.segment = segment;
  return op;
}

// A head's forward is timed as an evaluation's: in a step it computes nothing.
std::vector<Piece> WholePasses(UnitKind kind, int64_t unit) {
  const Forward forward = OpOf<Forward>(unit);
  const Piece backward = {OpOf<Backward>(unit), &ComputePoint::backward_seconds};
  if (!TrainsInBackward(kind)) return {{forward, &ComputePoint::forward_seconds}, backward};
  Forward evaluated = forward;
  evaluated.keep = Keep::kNothing;
  return {{evaluated, &ComputePoint::forward_seconds}, {forward}, backward};
}

std::vector<Piece> HalvesOfBackward(int64_t unit) {
  return {{OpOf<Forward>(unit)},
          {OpOf<BackwardInput>(unit), &ComputePoint::backward_input_seconds},
          {OpOf<BackwardWeight>(unit), &ComputePoint::backward_weight_seconds}};
}

// As lowered for a tensor-parallel rank, without its sums.
std::vector<Piece> PassesOfPart(UnitKind kind, int64_t unit) {
  std::vector<UnitSegment> forward = {UnitSegment::kWhole}, backward = {UnitSegment::kWhole};
  switch (kind) {
    case UnitKind::kEmbedding:
      break;
    case UnitKind::kLayer:
      forward = {UnitSegment::kAttention, UnitSegment::kMlp};
      backward = {UnitSegment::kMlp, UnitSegment::kAttention};
      break;
    case UnitKind::kHead:
      forward = {UnitSegment::kLogits, UnitSegment::kLoss};
      break;
  }
  std::vector<Piece> pieces;
  for (const UnitSegment s : forward) pieces.push_back({OpOf<Forward>(unit, s), &ComputePoint::part_forward_seconds});
  for (const UnitSegment s : backward) pieces.push_back({OpOf<Backward>(unit, s), &ComputePoint::part_backward_seconds});
  return pieces;
}

void Do(const Operation& op, UnitBench& bench) {
  if (const auto* forward = std::get_if<Forward>(&op)) {
    return forward->keep == Keep::kNothing ? bench.Evaluate() : bench.Forward(forward->segment);
  }
  if (const auto* backward = std::get_if<Backward>(&op)) return bench.Backward(backward->segment);
  if (std::holds_alternative<BackwardInput>(op)) return bench.BackwardInput();
  bench.BackwardWeight();
}

LaneTimer::Work Done(std::function<void()> work) {
  return [work = std::move(work)] {
    work();
    return absl::OkStatus();
  };
}

// Of one run of a unit's passes, which are awaited: what is counted is of the moment.
class ByteCount {
 public:
  ByteCount(DeviceBackend& backend, const UnitBench& bench, ComputePoint& point)
      : backend_(backend), bench_(bench), point_(point) {}

  void Prepared() {
    before_ = backend_.CurrentBytes();
    backend_.ResetPeak();
  }
  void Passed(bool forward) {
    if (forward) {
      at_backward_ = backend_.CurrentBytes();
      point_.saved_bytes = at_backward_ - before_ - bench_.output_bytes() + bench_.input_bytes();
      point_.forward_workspace_bytes = std::max(point_.forward_workspace_bytes, backend_.PeakBytes() - at_backward_);
    }
    const int64_t made = forward ? 0 : bench_.input_grad_bytes();
    point_.workspace_bytes = std::max(point_.workspace_bytes, backend_.PeakBytes() - at_backward_ - made);
    peak_ = std::max(peak_, backend_.PeakBytes());
    backend_.ResetPeak();
  }
  int64_t peak() const { return peak_; }

 private:
  DeviceBackend& backend_;
  const UnitBench& bench_;
  ComputePoint& point_;
  int64_t before_ = 0, at_backward_ = 0, peak_ = 0;
};

// The planner's straight line needs a second point; by its bytes it will not use a microbatch of that size.
ComputePoint Doubled(ComputePoint point) {
  point.microbatch *= 2;
  for (double ComputePoint::*seconds : kSecondsOfPoint) point.*seconds *= 2;
  point.saved_bytes *= 2;
  point.workspace_bytes *= 2;
  point.forward_workspace_bytes *= 2;
  return point;
}

const char* NameOf(UnitKind kind) {
  switch (kind) {
    case UnitKind::kEmbedding:
      return "embedding";
    case UnitKind::kLayer:
      return "layer";
    case UnitKind::kHead:
      return "head";
  }
  return "unit";
}

class UnitProfiler {
 public:
  UnitProfiler(const ProfiledRank& rank, absl::Duration end)
      : rank_(rank),
        seq_len_(rank.assignment.config.training.seq_len),
        head_rows_(rank.assignment.device.kind == DeviceKind::kCuda ? HeadRowsOfCards(rank.assignment.model.vocab_size)
                                                                    : kHeadChunkTokens),
        time_(rank.time, end) {}

  UnitProfile Measure(UnitKind kind, double budget_seconds) {
    MakeBenches(kind);
    const int64_t unit = FirstUnitOf(kind, rank_.assignment.model);
    const ModelSlice slice = SliceToMeasure(rank_.assignment.model);
    series_.push_back({&*whole_, ModelSlice(), WholePasses(kind, unit), true});
    series_.push_back({&*whole_, ModelSlice(), HalvesOfBackward(unit)});
    if (part_) series_.push_back({&*part_, slice, PassesOfPart(kind, unit)});

    UnitProfile profile = {MeasurePoints(budget_seconds)};
    if (profile.points.size() == 1) profile.points.push_back(Doubled(profile.points.front()));
    if (part_ && series_.size() > 1) {
      profile.part = static_cast<double>(slice.end - slice.first) / static_cast<double>(slice.parts);
    }
    time_.SayLeftOut(NameOf(kind));
    return profile;
  }

 private:
  // Unmeasured, with a first run: libraries set themselves up at the first call.
  void MakeBenches(UnitKind kind) {
    const c10::Device device = rank_.backend.tensors();
    LaneTimer timer(rank_.backend.StreamOf(Lane::kCompute), rank_.pacer);
    timer.Run(Done([&] {
      whole_.emplace(rank_.whole, rank_.whole.shape(), seq_len_, rank_.precision, device, kind);
      whole_->Prepare(1);
      whole_->Forward();
      whole_->Backward();
      whole_->Clear();
      if (rank_.part != nullptr) part_.emplace(*rank_.part, rank_.part->shape(), seq_len_, rank_.precision, device, kind);
    }));
    Check(timer.Await());
  }

  std::vector<ComputePoint> MeasurePoints(double budget_seconds) {
    const absl::Duration end = time_.Now() + absl::Seconds(budget_seconds);
    spent_at_ = end;
    const int64_t largest = std::max<int64_t>(2, rank_.assignment.config.training.global_batch_size);
    std::vector<ComputePoint> points;
    for (int64_t samples = 1; samples <= largest; samples *= 2) {
      const absl::Duration point_start = time_.Now();
      const std::optional<ComputePoint> point = points.empty() ? MeasureFirst() : TryPoint(samples);
      if (!point) break;
      points.push_back(*point);
      // Larger microbatches would only eat the host's memory: the device holds none of them.
      if (rank_.cap_bytes > 0 && peak_bytes_ > rank_.cap_bytes) break;
      const absl::Duration now = time_.Now(), next = 2 * (now - point_start);
      if (points.size() >= 2 && now + next > end) break;
      if (2 * samples <= largest && !time_.NextSizeFits(2 * samples, series_.size())) break;
    }
    // A declared speed has no noise, beyond what the host was late.
    if (rank_.assignment.device.flops_per_second <= 0) RepeatRough(end + absl::Seconds(budget_seconds), &points);
    return points;
  }

  // Until they rise smoothly, kMostRounds times, and once in any case.
  void RepeatRough(absl::Duration end, std::vector<ComputePoint>* points) {
    for (int round = 0; round < kMostRounds && (round == 0 || time_.Now() < end); ++round) {
      const std::set<size_t> rough = RoughPoints(*points);
      if (rough.empty()) return;
      for (const size_t i : rough) {
        if (!time_.AgainFits((*points)[i].microbatch)) return;
        if (const std::optional<ComputePoint> again = TryPoint((*points)[i].microbatch))
          (*points)[i] = Fastest((*points)[i], *again);
      }
    }
  }

  // A head's halves take an array of gradients more than its backward, a part those of its own.
  ComputePoint MeasureFirst() {
    if (const std::optional<ComputePoint> all = TryPoint(1)) return *all;
    MeasureWholePassesAlone();
    return MeasurePoint(1);
  }

  void MeasureWholePassesAlone() { series_.erase(series_.begin() + 1, series_.end()); }

  // nullopt: there is no memory for it.
  std::optional<ComputePoint> TryPoint(int64_t samples) {
    try {
      return MeasurePoint(samples);
    } catch (const c10::OutOfMemoryError&) {
      for (const Series& series : series_) series.bench->Clear();
    }
    if (head_rows_ == kHeadChunkTokens) return std::nullopt;
    head_rows_ = kHeadChunkTokens;  // a plan of so full a card gives it no more
    return TryPoint(samples);
  }

  ComputePoint MeasurePoint(int64_t samples) {
    ComputePoint point;
    point.microbatch = samples;
    const absl::Duration start = time_.Now();
    for (size_t number = 0; number < series_.size(); ++number) {
      MeasureSeries(number, &point);
      rank_.pacer.Beat();
    }
    time_.SizeTook(samples, time_.Now() - start);
    return point;
  }

  void MeasureSeries(size_t number, ComputePoint* point) {
    const Series& series = series_[number];
    Program program;
    program.num_units = static_cast<int32_t>(NumUnits(rank_.assignment.model));
    program.microbatches = {{point->microbatch}};
    const InstructionFlops flops(rank_.assignment.model, series.slice, seq_len_, program, {});
    LaneTimer timer(rank_.backend.StreamOf(Lane::kCompute), rank_.pacer);
    timer.Settle();
    ByteCount bytes(rank_.backend, *series.bench, *point);
    std::vector<std::vector<LaneTime>> counting;
    const int warm_ups = WarmUpsOf(timer);
    int repeats = number == 0 ? Repeats() : time_.RepeatsThatFit(number, series_.size(), Repeats());
    for (int run = 0; run < warm_ups + repeats; ++run) {
      // A host so slow that its second point comes late repeats the whole passes alone; on a stream runs do not wait for it.
      if (run > warm_ups && !series.counts_bytes && !timer.on_stream() && time_.Now() > spent_at_) break;
      const double lateness_before = rank_.pacer.lateness_seconds();
      ByteCount* const counts = run == 0 && series.counts_bytes ? &bytes : nullptr;
      const absl::Duration start = time_.Now();
      std::vector<LaneTime> times = RunOnce(series, flops, point->microbatch, timer, counts);
      if (counts != nullptr && warm_ups > 0) {
        run_seconds_ = SumOf(times);
        time_.RunTook(time_.Now() - start);
        if (!time_.OthersFit(series_.size())) MeasureWholePassesAlone();
        repeats = time_.RepeatsThatFit(number, series_.size(), Repeats());
      }
      // Where there is no time for another, this one counts.
      if (run >= warm_ups || repeats == 0) counting.push_back(std::move(times));
      const bool declared = rank_.assignment.device.flops_per_second > 0;
      if (declared && rank_.pacer.lateness_seconds() == lateness_before) break;
    }
    Check(timer.Await());
    peak_bytes_ = std::max(peak_bytes_, bytes.peak());
    Keep(series.pieces, counting, timer, point);
  }

  std::vector<LaneTime> RunOnce(const Series& series, const InstructionFlops& flops, int64_t samples, LaneTimer& timer,
                                ByteCount* bytes) {
    UnitBench& bench = *series.bench;
    // Bytes are those of what every plan has room for; a plan that has more room adds the difference.
    bench.set_rows_at_once(bytes != nullptr ? kHeadChunkTokens : head_rows_);
    timer.Run(Done([&bench, samples] { bench.Prepare(samples); }));
    if (bytes != nullptr) {
      Check(timer.Await());
      bytes->Prepared();
    }
    std::vector<LaneTime> times;
    for (const Piece& piece : series.pieces) {
      LaneTimer::Work work = Done([&bench, &piece] { Do(piece.op, bench); });
      if (piece.seconds == nullptr) {
        timer.Run(std::move(work));
        times.emplace_back();
      } else {
        times.push_back(timer.Measure(flops.Of(piece.op), std::move(work)));
      }
      if (bytes == nullptr) continue;
      Check(timer.Await());
      bytes->Passed(std::holds_alternative<Forward>(piece.op));
    }
    timer.Run(Done([&bench] { bench.Clear(); }));
    return times;
  }

  int Repeats() const {
    if (rank_.backend.soak() <= absl::ZeroDuration() || run_seconds_ <= 0) return kRepeats;
    return static_cast<int>(std::clamp(kLeastSecondsOfRuns / run_seconds_, double{kRepeats}, kMostRepeats));
  }

  static double SumOf(const std::vector<LaneTime>& times) {
    double seconds = 0;
    for (const LaneTime& time : times) seconds += time.seconds();
    return seconds;
  }

  // Of each figure the run that counts; a run's is the sum of its pieces.
  static void Keep(const std::vector<Piece>& pieces, const std::vector<std::vector<LaneTime>>& runs, const LaneTimer& timer,
                   ComputePoint* point) {
    std::vector<ComputePoint> sums(runs.size());
    for (size_t r = 0; r < runs.size(); ++r) {
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (pieces[i].seconds != nullptr) sums[r].*pieces[i].seconds += runs[r][i].seconds();
      }
    }
    for (const Piece& piece : pieces) {
      if (piece.seconds == nullptr) continue;
      std::vector<double> seconds;
      for (const ComputePoint& sum : sums) seconds.push_back(sum.*piece.seconds);
      point->*piece.seconds = SecondsOf(std::move(seconds), timer);
    }
  }

  const ProfiledRank& rank_;
  const int64_t seq_len_;
  int64_t head_rows_;  // of logits at once, where time is measured
  std::optional<UnitBench> whole_, part_;
  std::vector<Series> series_;  // the whole unit's passes first
  int64_t peak_bytes_ = 0;      // of all points
  double run_seconds_ = 0;      // of the newest point's whole passes, the first time; 0: not known
  absl::Duration spent_at_;     // when the time that is allowed for the unit is over
  UnitTime time_;
};

}  // namespace

ModelSlice SliceToMeasure(const ModelShape& shape) {
  const int64_t parts = NumParts(shape);
  if (parts < 2) return ModelSlice();
  const double share = static_cast<double>(std::max<int64_t>(1, (parts + 2) / 4)) / static_cast<double>(parts);
  const double shares[] = {share, 1 - share};
  const absl::StatusOr<std::vector<ModelSlice>> slices = SlicesOf(shape, shares);
  return slices.ok() ? slices->front() : ModelSlice();
}

UnitProfile MeasureUnit(const ProfiledRank& rank, UnitKind kind, double budget_seconds, absl::Duration end) {
  return UnitProfiler(rank, end).Measure(kind, budget_seconds);
}

}  // namespace motley::engine
