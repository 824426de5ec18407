#include "worker/records/step_recorder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/count.h"
#include "common/base/status_macros.h"

namespace motley::worker {
namespace {

std::string Path(const std::string& folder, const StepFormat& format) {
  return absl::StrCat(folder, "/", std::string(format.folder));
}

// The highest number of a file of this form; 0: there is none. What else lies in the folder does not count.
absl::StatusOr<int64_t> NewestIn(const std::string& folder, const StepFormat& format) {
  int64_t newest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const size_t digits = name.find_first_of("0123456789");
    int64_t number = 0;
    if (digits == std::string::npos ||
        !absl::SimpleAtoi(name.substr(digits, name.find_first_not_of("0123456789", digits) - digits), &number)) {
      continue;
    }
    if (name == format.file_name(Epoch(number))) newest = std::max(newest, number);
  }
  if (error) return FileError(error.value(), "read the folder", folder);
  return newest;
}

}  // namespace

std::unique_ptr<StepRecorder> StepRecorder::CreateIfAsked(const RankAssignment& assignment, const Clock& clock, Options options) {
  if (assignment.rank != 0 || assignment.config.checkpoint.folder.empty()) return nullptr;
  if (StepFormatsOf(assignment.config.metrics).empty()) return nullptr;
  return std::unique_ptr<StepRecorder>(new StepRecorder(assignment, clock, std::move(options)));
}

StepRecorder::StepRecorder(const RankAssignment& assignment, const Clock& clock, Options options)
    : clock_(clock),
      options_(std::move(options)),
      folder_(assignment.config.checkpoint.folder),
      epoch_(assignment.epoch),
      tokens_per_step_(assignment.config.training.global_batch_size * assignment.config.training.seq_len),
      predicted_step_seconds_(assignment.predicted_step_seconds) {
  for (const StepFormat& format : StepFormatsOf(assignment.config.metrics)) sinks_.push_back({.format = format});
  thread_ = std::thread([this] { Loop(); });
}

StepRecorder::~StepRecorder() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void StepRecorder::Add(StepStats stats) {
  stats.epoch = epoch_;
  stats.predicted_step_seconds = predicted_step_seconds_;
  if (stats.step_seconds > 0) stats.tokens_per_second = static_cast<double>(tokens_per_step_) / stats.step_seconds;
  const double now = absl::ToDoubleSeconds(clock_.WallNow() - absl::UnixEpoch());
  absl::MutexLock lock(&mutex_);
  added_.push_back({stats, now, stats.step * tokens_per_step_});
  // The thread may be held by a file system that does not answer.
  if (added_.size() > options_.most_waiting) {
    added_.pop_front();
    ++dropped_;
  }
  changed_.NotifyAll();
}

void StepRecorder::Loop() {
  bool all_written = true, closing = false;
  while (!closing) {
    std::deque<StepRecord> added;
    int64_t dropped = 0;
    {
      absl::MutexLock lock(&mutex_);
      const auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_ || (all_written && !added_.empty()); };
      changed_.WaitFor(mutex_, all_written ? absl::InfiniteDuration() : options_.pause, woken);
      closing = closing_;
      added.swap(added_);
      dropped = std::exchange(dropped_, 0);
    }
    for (Sink& sink : sinks_) sink.dropped += dropped;
    all_written = WriteWhatWaits(std::move(added));
  }
  for (Sink& sink : sinks_) {
    const int64_t lost = sink.dropped + static_cast<int64_t>(sink.waiting.size());
    if (lost > 0 && !superseded_) {
      options_.log(absl::StrCat(Count(lost, "step record"), " could not be written to ", Path(folder_, sink.format)));
    }
    if (!sink.file) continue;
    if (const absl::Status status = sink.file->Sync(); !status.ok()) Complain(sink, status);
  }
}

bool StepRecorder::WriteWhatWaits(std::deque<StepRecord> added) {
  bool all = true;
  for (Sink& sink : sinks_) {
    if (superseded_) break;
    sink.waiting.insert(sink.waiting.end(), added.begin(), added.end());
    while (sink.waiting.size() > options_.most_waiting) {
      sink.waiting.pop_front();
      ++sink.dropped;
    }
    if (sink.waiting.empty()) continue;
    const absl::Status status = Write(sink);
    if (status.ok()) continue;
    all = false;
    Complain(sink, status);
    superseded_ = absl::IsFailedPrecondition(status);
  }
  return all || superseded_;
}

absl::Status StepRecorder::Open(Sink& sink) {
  MOTLEY_RETURN_IF_ERROR(options_.confirm("keep step records"));
  const std::string folder = Path(folder_, sink.format);
  MOTLEY_RETURN_IF_ERROR(MakeOwnFolder(folder));
  MOTLEY_ASSIGN_OR_RETURN(const int64_t newest, NewestIn(folder, sink.format));
  // A job of the same name was deleted and its folder stayed: the names go on from there, so that they keep their order.
  const Epoch number(std::max(epoch_.value(), newest + 1));
  absl::StatusOr<AppendFile> file = AppendFile::CreateNew(absl::StrCat(folder, "/", sink.format.file_name(number)));
  MOTLEY_RETURN_IF_ERROR(file.status());
  sink.file.emplace(std::move(*file));
  return absl::OkStatus();
}

absl::Status StepRecorder::Write(Sink& sink) {
  if (!sink.file) MOTLEY_RETURN_IF_ERROR(Open(sink));
  std::string text;
  const StepRecord& first = sink.waiting.front();
  if (sink.file->empty()) text = sink.format.head(first.stats.step, first.unix_seconds);
  for (const StepRecord& record : sink.waiting) text += sink.format.record(record);
  MOTLEY_RETURN_IF_ERROR(sink.file->Append(text));
  sink.waiting.clear();
  if (std::exchange(sink.in_trouble, false)) options_.log(absl::StrCat("step records are written again to ", sink.file->path()));
  return absl::OkStatus();
}

void StepRecorder::Complain(Sink& sink, const absl::Status& status) {
  if (std::exchange(sink.in_trouble, true)) return;
  options_.log(absl::StrCat("step records wait, training goes on: ", std::string(status.message())));
}

}  // namespace motley::worker
