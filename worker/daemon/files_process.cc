#include "worker/daemon/files_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/logging.h"
#include "common/base/status_macros.h"
#include "common/wire/session.h"
#include "worker/daemon/files_child.h"
#include "worker/daemon/localize.h"

namespace motley::worker {
namespace {

// What the child needs of them to know which blocks to bring: their programs are the most of a message.
StartCommand WithoutPrograms(StartCommand command) {
  for (RankAssignment& rank : command.ranks) {
    rank.program = rank.evaluation = Program();
    rank.config.planner.plan_json.clear();
  }
  return command;
}

void Reap(const SpawnedProcess& process) {
  kill(process.pid, SIGKILL);
  while (waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

FilesProcess::FilesProcess(FilesProcessConfig config, Outbox& outbox, std::function<void(StartCommand)> start)
    : config_(std::move(config)), outbox_(outbox), start_(std::move(start)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { Loop(); });
}

FilesProcess::~FilesProcess() { End(); }

void FilesProcess::End() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
  thread_.join();
}

void FilesProcess::Post(Command command) {
  {
    absl::MutexLock lock(&mutex_);
    commands_.push_back(std::move(command));
  }
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

void FilesProcess::Ask(HoldingsCommand question) {
  Post([this, question = std::move(question)] {
    questions_.push_back(question);
    Tell(question);
  });
}

void FilesProcess::Copy(CopyCommand command) {
  Post([this, command = std::move(command)] {
    const std::pair of(command.input.empty() ? command.job : JobId(), command.input);
    FetchReport& report = copies_[of];
    if (report.copy_id != command.copy_id) report = {command.job, command.epoch};
    report.copy_id = command.copy_id;
    report.input = command.input;
    if (command.input.empty() ? command.files.empty() : command.copy_id.empty()) copies_.erase(of);
    Tell(command);
  });
}

void FilesProcess::Drop(DropCommand command) {
  Post([this, command = std::move(command)] { Tell(command); });
}

void FilesProcess::Start(StartCommand command) {
  Post([this, command = std::move(command)]() mutable { Begin(std::move(command)); });
}

void FilesProcess::Stop(const StopCommand& command) {
  Post([this, command] {
    if (!waiting_ || waiting_->ranks[0].job != command.job || waiting_->ranks[0].epoch > command.epoch) return;
    (void)Send(command);
    Refuse("told to stop while what it goes on from was brought", absl::StatusCode::kCancelled);
  });
}

void FilesProcess::Restored(std::string folder) {
  Post([this, folder = std::move(folder)] {
    if (!folder.starts_with(absl::StrCat(config_.local, "/jobs/"))) return;
    const absl::Status removed = RemoveTree(folder);
    if (!removed.ok()) LogWarning(absl::StrCat("what ranks went on from stays: ", std::string(removed.message())));
  });
}

void FilesProcess::Loop() {
  while (true) {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}};
    if (process_) {
      fds.push_back({process_->socket.get(), static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT)), 0});
      fds.push_back({process_->output.get(), POLLIN, 0});
    }
    poll(fds.data(), fds.size(), -1);
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof(count));
    std::deque<Command> commands;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) break;
      commands.swap(commands_);
    }
    for (const Command& command : commands) command();
    if (process_) Receive();
  }
  if (process_) Reap(*process_);
}

void FilesProcess::Begin(StartCommand command) {
  if (waiting_) Refuse("another generation begins", absl::StatusCode::kCancelled);
  if (command.source.name.empty()) {
    Localize(config_.local, command);
    return start_(std::move(command));
  }
  const absl::Status sent = Send(WithoutPrograms(command));
  waiting_ = std::move(command);
  if (!sent.ok()) OnGone(std::string(sent.message()));
}

absl::Status FilesProcess::Spawn() {
  if (process_) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(
      SpawnedProcess process,
      worker::Spawn(config_.program, {kFilesChildWord, config_.local, config_.data_address, config_.node.value()}, {}, {}));
  process_ = std::move(process);
  running_ = true;
  decoder_ = FrameDecoder();
  unsent_.clear();
  return absl::OkStatus();
}

absl::Status FilesProcess::Send(const CoordinatorCommand& command) {
  MOTLEY_RETURN_IF_ERROR(Spawn());
  unsent_ += EncodeFrame(wire::ToProto(command).SerializeAsString());
  return absl::OkStatus();
}

void FilesProcess::Tell(const CoordinatorCommand& command) {
  const absl::Status sent = Send(command);
  if (!sent.ok()) OnGone(std::string(sent.message()));
}

void FilesProcess::Receive() {
  std::string why;
  while (!unsent_.empty() && why.empty()) {
    const ssize_t n = send(process_->socket.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n < 0) why = "it takes no messages";
    if (n > 0) unsent_.erase(0, static_cast<size_t>(n));
  }
  char buffer[1 << 16];
  for (ssize_t n = 1; why.empty() && n > 0;) {
    n = recv(process_->socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) decoder_.Append(std::string_view(buffer, static_cast<size_t>(n)));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) why = "it ended";
  }
  // What it prints is for the worker's log: a line that no message has, such as a library's.
  for (ssize_t n = 1; n > 0;) {
    n = read(process_->output.get(), buffer, sizeof(buffer));
    if (n > 0) LogWarning(absl::StrCat("files process: ", CleanLine(std::string(buffer, static_cast<size_t>(n)))));
  }
  while (why.empty()) {
    const absl::StatusOr<std::optional<std::string>> frame = decoder_.Next();
    if (!frame.ok()) why = std::string(frame.status().message());
    if (!frame.ok() || !frame->has_value()) break;
    v1::WorkerMessage message;
    std::optional<WorkerReport> report;
    if (message.ParseFromString(**frame)) report = wire::FromProto(message);
    if (report) OnReport(*std::move(report));
  }
  if (!why.empty()) OnGone(why);
}

void FilesProcess::OnReport(WorkerReport report) {
  if (const auto* holdings = std::get_if<HoldingsReport>(&report)) {
    std::erase_if(questions_, [&](const HoldingsCommand& question) { return question.check_id == holdings->check_id; });
    if (!holdings->error.empty()) LogWarning(absl::StrCat("job ", holdings->job.value(), ": ", holdings->error));
    return outbox_.Push(std::move(report));
  }
  const auto* fetch = std::get_if<FetchReport>(&report);
  if (fetch != nullptr && !fetch->copy_id.empty()) {
    const auto copy = copies_.find({fetch->input.empty() ? fetch->job : JobId(), fetch->input});
    if (copy == copies_.end() || copy->second.copy_id != fetch->copy_id) return;
    copy->second = *fetch;
    if (fetch->done || !fetch->error.empty()) copies_.erase(copy);
    return outbox_.Push(std::move(report));
  }
  if (fetch == nullptr || !waiting_ || fetch->job != waiting_->ranks[0].job || fetch->epoch != waiting_->ranks[0].epoch) return;
  if (!fetch->error.empty()) return Refuse(fetch->error, fetch->error_code);
  outbox_.Push(report);
  if (!fetch->done) return;
  StartCommand command = *std::exchange(waiting_, std::nullopt);
  Localize(config_.local, command);
  start_(std::move(command));
}

void FilesProcess::OnGone(const std::string& why) {
  if (process_) Reap(*process_);
  process_.reset();
  running_ = false;
  const std::string error = absl::StrCat("the process that keeps files of jobs here is gone: ", CleanLine(why));
  LogError(error);
  for (const HoldingsCommand& question : std::exchange(questions_, {})) {
    HoldingsReport report{question.job, question.epoch, question.check_id, error, absl::StatusCode::kUnavailable};
    outbox_.Push(std::move(report));
  }
  for (auto& [of, copy] : std::exchange(copies_, {})) {
    copy.error = error;
    copy.error_code = absl::StatusCode::kUnavailable;
    outbox_.Push(std::move(copy));
  }
  if (waiting_) Refuse(error, absl::StatusCode::kUnavailable);
}

// Of ranks that never were: the coordinator waits for the end of each.
void FilesProcess::Refuse(const std::string& why, absl::StatusCode code) {
  const StartCommand command = *std::exchange(waiting_, std::nullopt);
  const Fault fault = code == absl::StatusCode::kCancelled  ? Fault::kPeer
                      : code == absl::StatusCode::kDataLoss ? Fault::kDamage  // nobody who is here has it whole
                                                            : Fault::kStorage;
  if (fault != Fault::kPeer) LogWarning(absl::StrCat("job ", command.ranks[0].job.value(), ": ", why));
  for (const RankAssignment& rank : command.ranks) {
    RankReport report{rank.job, rank.epoch, rank.rank, rank.device.id, RankEventKind::kFailed, why, fault};
    if (fault == Fault::kDamage) report.damaged_checkpoint = command.source.name;
    outbox_.Push(std::move(report));
  }
}

}  // namespace motley::worker
