#include "worker/daemon/storage_checker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/wire/session.h"
#include "worker/daemon/localize.h"
#include "worker/daemon/spawn.h"
#include "worker/daemon/storage_check.h"

namespace motley::worker {
namespace {

constexpr absl::Duration kTokenPatience = absl::Seconds(5);  // shared file systems are late
constexpr absl::Duration kChildrensGoodbye = absl::Seconds(1);
constexpr size_t kMaxRequestBytes = 64 << 10;
constexpr size_t kMaxChildren = 64;
constexpr int kTickMs = 100;  // exits are looked for this often
constexpr absl::Duration kStartPause = absl::Milliseconds(500);
constexpr char kRemove[] = "remove", kCheck[] = "check";

std::string Names(const StorageCheckCommand& check) {
  const std::string validation =
      check.validation_path.empty() ? "" : absl::StrCat(", data.validation_path '", check.validation_path, "'");
  return absl::StrCat("data.path '", check.data_path, "'", validation, " or checkpoint folder '", check.checkpoint_folder, "'");
}

// Of descriptors, processes or memory (ErrnoToStatus: EMFILE, ENFILE, ENOMEM and the like, EAGAIN of a fork).
bool IsShortage(const absl::Status& status) { return absl::IsResourceExhausted(status) || absl::IsUnavailable(status); }

bool WroteToken(const StorageCheckCommand& check) { return check.write_token && !check.token.empty(); }

}  // namespace

StorageChecker::StorageChecker(StorageCheckerConfig config, const Clock& clock, Outbox& outbox)
    : config_(std::move(config)), clock_(clock), outbox_(outbox), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { Loop(); });
}

StorageChecker::~StorageChecker() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    std::erase_if(waiting_, [](const Task& task) { return task.kind == Kind::kCheck; });
    for (auto& [job, check] : tokens_) waiting_.push_back({Kind::kRemove, std::move(check)});
    tokens_.clear();
  }
  Wake();
  thread_.join();
}

void StorageChecker::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

void StorageChecker::Check(StorageCheckCommand check) {
  {
    absl::MutexLock lock(&mutex_);
    if (WroteToken(check)) tokens_[check.job] = check;
    waiting_.push_back({Kind::kCheck, std::move(check)});
  }
  Wake();
}

void StorageChecker::Drop(const StopCommand& stop) {
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(waiting_, [&](const Task& task) {
      return task.kind == Kind::kCheck && task.command.job == stop.job && task.command.epoch <= stop.epoch;
    });
    stops_.push_back(stop);
  }
  Wake();
}

void StorageChecker::RemoveToken(const JobId& job) {
  {
    absl::MutexLock lock(&mutex_);
    auto token = tokens_.extract(job);
    if (token.empty()) return;
    waiting_.push_back({Kind::kRemove, std::move(token.mapped())});
  }
  Wake();
}

void StorageChecker::Loop() {
  absl::Duration end = absl::InfiniteDuration();
  while (true) {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
    for (const Child& child : children_) {
      fds.push_back({child.process.socket.valid() ? child.process.socket.get() : -1, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), children_.empty() && !start_again_at_ ? -1 : kTickMs);
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof(count));
    bool stopping = false;
    std::vector<StopCommand> stops;
    {
      absl::MutexLock lock(&mutex_);
      stopping = stopping_;
      stops.swap(stops_);
    }
    if (stopping && end == absl::InfiniteDuration()) end = clock_.Now() + kChildrensGoodbye;
    for (Child& child : children_) {
      const StorageCheckCommand& command = child.task.command;
      const bool unwanted = stopping || std::any_of(stops.begin(), stops.end(), [&](const StopCommand& stop) {
                              return stop.job == command.job && command.epoch <= stop.epoch;
                            });
      if (child.task.kind != Kind::kCheck || !unwanted) continue;
      child.answered = true;
      child.kill_at = -absl::InfiniteDuration();
    }
    std::erase_if(children_, [this](Child& child) { return !Serve(child); });
    StartWaiting(stopping);
    if (stopping && (children_.empty() || clock_.Now() >= end)) break;
  }
  // A process that waits for a dead mount dies when the mount answers; nobody waits for it here.
  for (const Child& child : children_) kill(child.process.pid, SIGKILL);
}

bool StorageChecker::StartLater(const absl::Status& status, Task task, bool stopping) {
  if (stopping || task.kind != Kind::kCheck || !IsShortage(status)) return false;
  const absl::Duration now = clock_.Now();
  if (task.give_up_at == absl::InfiniteDuration()) task.give_up_at = now + config_.start_patience;
  if (now >= task.give_up_at) return false;
  start_again_at_ = now + kStartPause;
  absl::MutexLock lock(&mutex_);
  waiting_.push_front(std::move(task));
  return true;
}

void StorageChecker::StartWaiting(bool stopping) {
  if (!stopping && start_again_at_ && clock_.Now() < *start_again_at_) return;
  start_again_at_.reset();
  while (true) {
    // Those that were killed and still hang in the kernel are not waited for.
    const auto busy = std::count_if(children_.begin(), children_.end(), [](const Child& child) { return !child.killed; });
    if (!stopping && busy >= static_cast<ptrdiff_t>(config_.at_a_time)) return;
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const absl::Status status = Start(task);
    if (status.ok()) continue;
    if (StartLater(status, task, stopping)) return;
    StorageReport report{task.command.job, task.command.epoch, "", {}, false, task.command.check_id};
    report.error = CleanLine(std::string(status.message()));
    if (IsShortage(status)) {
      report.error = absl::StrCat("the storage check could not be started (", report.error,
                                  "), which says nothing of the job's data and folder; give this worker more open files, "
                                  "processes or memory (ulimit -n, ulimit -u, the limits of its service)");
      report.error_code = kCheckNotStarted;
    }
    LogError(absl::StrCat("storage check: ", report.error));
    if (task.kind == Kind::kCheck) outbox_.Push(std::move(report));
  }
}

absl::Status StorageChecker::Start(Task task) {
  const bool check = task.kind == Kind::kCheck;
  const std::string frame = EncodeFrame(wire::ToProto(CoordinatorCommand(task.command)).SerializeAsString());
  if (frame.size() > kMaxRequestBytes) return absl::InvalidArgumentError(absl::StrCat("paths of ", frame.size(), " bytes"));
  if (children_.size() >= kMaxChildren) {
    return absl::DeadlineExceededError(
        absl::StrCat(children_.size(), " storage checks were killed and hang still: a file system does not answer"));
  }
  std::vector<std::string> arguments = {kStorageChildWord, check ? kCheck : kRemove};
  arguments.insert(arguments.end(), config_.file_roots.begin(), config_.file_roots.end());
  for (std::string& root :
       InputRoots(config_.files_folder, {task.command.data_path, task.command.validation_path, task.command.initial})) {
    arguments.push_back(std::move(root));
  }
  MOTLEY_ASSIGN_OR_RETURN(SpawnedProcess process, Spawn(config_.program, arguments, {}, {.known_parts = config_.known_parts}));
  // A socket takes this much at once, so nothing here waits for the child; one that is gone already answers by its exit.
  (void)WriteAll(process.socket.get(), frame);
  const absl::Duration patience = !check                                   ? config_.remove_patience
                                  : task.command.verify_checkpoint.empty() ? config_.check_patience
                                                                           : config_.verify_patience;
  children_.push_back({std::move(task), std::move(process), FrameDecoder(), clock_.Now() + patience, !check});
  return absl::OkStatus();
}

bool StorageChecker::Serve(Child& child) {
  const StorageCheckCommand& command = child.task.command;
  int status = 0;
  const bool gone = waitpid(child.process.pid, &status, WNOHANG) == child.process.pid;
  char buffer[1 << 12];
  for (ssize_t n = 1; child.process.socket.valid() && n > 0;) {
    n = recv(child.process.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) child.decoder.Append(std::string_view(buffer, static_cast<size_t>(n)));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) child.process.socket.Reset();
  }
  const absl::StatusOr<std::optional<std::string>> frame = child.decoder.Next();
  v1::WorkerMessage message;
  if (!child.answered && frame.ok() && frame->has_value() && message.ParseFromString(**frame)) {
    const std::optional<WorkerReport> report = wire::FromProto(message);
    if (report && std::holds_alternative<StorageReport>(*report)) Answer(child, std::get<StorageReport>(*report));
  }
  StorageReport failure{command.job, command.epoch, "", {}, false, command.check_id};
  if (clock_.Now() >= child.kill_at && !child.killed) {
    child.killed = true;
    kill(child.process.pid, SIGKILL);
    failure.error = absl::StrCat(
        "the storage check took longer than ", absl::FormatDuration(config_.check_patience), ": ", Names(command),
        " does not answer, or the data is too large to read in that time; is a file system not mounted or its server away?");
    if (!child.answered) Answer(child, failure);
  }
  if (gone && !child.answered) {
    failure.error = absl::StrCat("the storage check of ", Names(command), " ended without an answer (wait status ", status, ")");
    Answer(child, failure);
  }
  return !gone;
}

void StorageChecker::Answer(Child& child, StorageReport report) {
  child.answered = true;
  // Of a sample that is what was asked.
  if (!report.error.empty() && !child.task.command.sample)
    LogWarning(absl::StrCat("job ", report.job.value(), ": ", report.error));
  outbox_.Push(std::move(report));
}

int StorageChildMain(int argc, char** argv) {
  FrameDecoder decoder;
  char buffer[1 << 12];
  std::optional<std::string> frame;
  while (!frame) {
    const ssize_t n = recv(kChildSocket, buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 65;
    decoder.Append(std::string_view(buffer, static_cast<size_t>(n)));
    absl::StatusOr<std::optional<std::string>> next = decoder.Next();
    if (!next.ok()) return 65;
    frame = *std::move(next);
  }
  v1::CoordinatorMessage message;
  if (!message.ParseFromString(*frame)) return 65;
  const auto command = wire::FromProto(message);
  if (!command.ok() || !*command || !std::holds_alternative<StorageCheckCommand>(**command)) return 65;
  const auto& check = std::get<StorageCheckCommand>(**command);
  const FileRoots roots(std::vector<std::string>(argv + std::min(argc, 3), argv + argc));
  if (argc > 2 && strcmp(argv[2], kRemove) == 0) {
    RemoveToken(check, roots);
    return 0;
  }
  KnownParts known(fcntl(kChildKnownParts, F_GETFD) >= 0 ? kChildKnownParts : -1);
  const StorageReport report = CheckStorage(check, roots, SystemClock(), kTokenPatience, &known);
  return WriteAll(kChildSocket, EncodeFrame(wire::ToProto(WorkerReport(report)).SerializeAsString())).ok() ? 0 : 74;
}

}  // namespace motley::worker
