#include "worker/engine/shared_proof.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/heartbeat.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/base/this_node.h"

namespace motley::engine {
namespace {

constexpr absl::Duration kRound = absl::Milliseconds(500), kBeat = absl::Seconds(1);
// What people see changes no more often: it may be a line of a log each time.
constexpr absl::Duration kTextStays = absl::Seconds(5);
constexpr double kTensOfSeconds = 100;  // from here on estimates are rounded to ten

std::string About(absl::Duration left) {
  const double seconds = std::ceil(absl::ToDoubleSeconds(left));
  const auto rounded = static_cast<int64_t>(seconds < kTensOfSeconds ? seconds : std::ceil(seconds / 10) * 10);
  constexpr int64_t kMinute = 60, kMinutesFrom = 10 * kMinute;
  if (rounded < kMinutesFrom) return absl::StrCat("about ", rounded, " s left");
  return absl::StrCat("about ", (rounded + kMinute - 1) / kMinute, " min left");
}

}  // namespace

std::vector<double> ProofRound::ToVector() const {
  return {over ? 1.0 : 0.0,
          touched ? 1.0 : 0.0,
          stop ? 1.0 : 0.0,
          static_cast<double>(bytes),
          static_cast<double>(all_bytes),
          absl::ToDoubleSeconds(left),
          absl::ToDoubleSeconds(unsaved)};
}

ProofRound ProofRound::Of(const std::vector<std::vector<double>>& by_rank) {
  ProofRound round;
  for (const std::vector<double>& v : by_rank) {
    round.over = round.over && v[0] != 0;
    round.touched = round.touched || v[1] != 0;
    round.stop = round.stop || v[2] != 0;
    const auto bytes = static_cast<int64_t>(v[3]), all = static_cast<int64_t>(v[4]);
    if (all - bytes > round.all_bytes - round.bytes) round.bytes = bytes, round.all_bytes = all;
    round.left = std::max(round.left, absl::Seconds(v[5]));
  }
  round.unsaved = absl::Seconds(by_rank[0][6]);
  return round;
}

std::string ProofRound::Text() const {
  if (all_bytes == 0) return "comparing the data";
  const std::string share = absl::StrCat("comparing the data (", bytes * 100 / all_bytes, " %");
  if (left == absl::ZeroDuration() || left == absl::InfiniteDuration()) return share + ")";
  return absl::StrCat(share, ", ", About(left), ")");
}

SharedProof::SharedProof(const RankAssignment& assignment, const EngineOptions& options, Communicator& communicator,
                         ProgressMeter& progress)
    : assignment_(assignment),
      options_(options),
      communicator_(communicator),
      progress_(progress),
      known_(options.known_parts_fd) {}

void SharedProof::Begin(std::vector<const Dataset*> data) {
  data_ = std::move(data);
  std::vector<const Dataset*> unproven;
  std::copy_if(data_.begin(), data_.end(), std::back_inserter(unproven), [](const Dataset* set) { return !set->is_proven(); });
  awaited_ = !unproven.empty();
  if (awaited_ && ProvesData(assignment_))
    prover_ = std::make_unique<DataProver>(std::move(unproven), &known_, options_.before_proof);
}

void SharedProof::Again(bool afresh) {
  awaited_ = true;
  prover_.reset();  // what it has read may be what was before
  if (ProvesData(assignment_)) prover_ = std::make_unique<DataProver>(data_, afresh ? nullptr : &known_, options_.before_proof);
}

absl::StatusOr<bool> SharedProof::Touched(bool look) {
  bool touched = false;
  for (const Dataset* set : data_) {
    const absl::StatusOr<bool> found = set->TakeTouched(look);
    MOTLEY_RETURN_IF_ERROR(OfThisNode(found.status()));
    touched |= *found;
  }
  return touched;
}

// Ranks that do not compare come to it at once, and wait in it for those that do.
absl::StatusOr<ProofRound> SharedProof::Exchange(absl::Duration unsaved, bool stops) {
  ProofRound mine;
  if (prover_ != nullptr) {
    mine.over = prover_->IsOverWithin(kRound);
    MOTLEY_RETURN_IF_ERROR(prover_->Found());
    mine.bytes = prover_->bytes();
    mine.all_bytes = prover_->all_bytes();
    mine.left = mine.over ? absl::ZeroDuration() : prover_->Left();
  }
  if (mine.over) {
    MOTLEY_ASSIGN_OR_RETURN(mine.touched, Touched(true));
  }
  mine.stop = stops;
  mine.unsaved = unsaved;
  MOTLEY_ASSIGN_OR_RETURN(const auto by_rank, communicator_.GatherScalars(mine.ToVector()));
  return ProofRound::Of(by_rank);
}

absl::Status SharedProof::Await() {
  return AwaitUnlessStopped(absl::ZeroDuration(), [] { return false; }).status();
}

absl::StatusOr<bool> SharedProof::AwaitUnlessStopped(absl::Duration unsaved, const std::function<bool()>& stops) {
  if (!awaited_) return true;
  absl::Mutex mutex;
  std::string text = ProofRound().Text();
  const Heartbeat heartbeat(kBeat, [&] {
    absl::MutexLock lock(&mutex);
    progress_.Beat(text);
  });
  int64_t told_ns = MonotonicNs() - absl::ToInt64Nanoseconds(kTextStays);
  for (;;) {
    MOTLEY_ASSIGN_OR_RETURN(const ProofRound round, Exchange(unsaved, stops()));
    if (round.over && !round.touched) break;
    if (round.is_not_worth_it()) return false;
    if (round.over) Again(false);
    if (MonotonicNs() - told_ns < absl::ToInt64Nanoseconds(kTextStays)) continue;
    told_ns = MonotonicNs();
    absl::MutexLock lock(&mutex);
    text = round.Text();
  }
  awaited_ = false;
  return true;
}

// A mean over nothing is none. But it is the job's own mistake only where the data are what was prepared on every node.
absl::Status SharedProof::NothingCommonToTrain(const std::vector<int64_t>& trained, const std::string& rows,
                                               const std::string& remedy) {
  MOTLEY_RETURN_IF_ERROR(Await());
  const auto other = std::find_if(trained.begin(), trained.end(), [&](int64_t tokens) { return tokens != trained[0]; });
  if (other == trained.end()) {
    return absl::FailedPreconditionError(absl::StrCat(rows, " have no token that is trained on, so there is no loss; ", remedy));
  }
  Again(true);  // somebody's data are not what they were when they were compared
  MOTLEY_RETURN_IF_ERROR(Await());
  const auto rank = static_cast<size_t>(other - trained.begin());
  return absl::FailedPreconditionError(
      absl::StrCat(rows, " have ", trained[0], " tokens that are trained on for ", assignment_.devices[0].value(), " and ",
                   *other, " for ", assignment_.devices[rank].value(),
                   ", though both nodes' data were compared and are what was prepared; a disk or a memory gave "
                   "other bytes at one of two reads"));
}

}  // namespace motley::engine
