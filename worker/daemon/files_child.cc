#include "worker/daemon/files_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/clean_text.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/job_uid.h"
#include "common/base/landlock.h"
#include "common/base/missing_mount.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/held_checkpoints.h"
#include "common/rpc/tls_credentials.h"
#include "common/wire/session.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/rank_files.h"
#include "worker/daemon/spawn.h"
#include "worker/files/bring_input.h"
#include "worker/files/disk_listing.h"
#include "worker/files/files_identity.h"
#include "worker/files/files_server.h"
#include "worker/files/input_folder.h"
#include "worker/files/job_folder.h"
#include "worker/files/keep_copies.h"
#include "worker/files/stage.h"

namespace motley::worker {
namespace {

constexpr int kNice = 10;      // ranks come first
constexpr int kKeptFree = 10;  // copies leave this part of a file system free
constexpr mode_t kPrivate = 0077;
constexpr int kLandlockThatLinks = 2;  // before, links between folders are refused whatever the rules say
constexpr char kLockName[] = "/lock", kProofName[] = "/.can-write";

// What the worker hears. Thread-safe.
class Reports {
 public:
  // Not if `unwanted` came before: nothing follows it.
  void Send(const WorkerReport& report, const absl::Notification* unwanted = nullptr) {
    const std::string frame = EncodeFrame(wire::ToProto(report).SerializeAsString());
    absl::MutexLock lock(&mutex_);
    if (unwanted == nullptr || !unwanted->HasBeenNotified()) (void)WriteAll(kChildSocket, frame);
  }
  void StopThoseOf(absl::Notification& unwanted) {
    absl::MutexLock lock(&mutex_);
    unwanted.Notify();
  }

 private:
  absl::Mutex mutex_;
};

using Work = std::function<absl::Status(const Bringing&)>;

// Of one that did not begin, too.
void SendEnd(Reports& reports, FetchReport report, const absl::Status& end, const absl::Notification* unwanted = nullptr) {
  report.done = end.ok();
  report.error = CleanLine(std::string(end.message()));
  report.error_code = end.code();
  reports.Send(report, unwanted);
}

// Brings what one start's ranks go on from, or a copy, on a thread of its own. Its end stops it.
class Fetch {
 public:
  Fetch(FetchReport first, Work work, const std::string& local, const FilesIdentity& identity, Reports& reports)
      : first_(std::move(first)),
        reports_(reports),
        thread_([this, work = std::move(work), local, &identity] { Run(work, local, identity); }) {}
  ~Fetch() {
    reports_.StopThoseOf(stopped_);
    thread_.join();
  }
  const FetchReport& first() const { return first_; }
  void Limit(int64_t bytes_per_second) { bytes_per_second_ = bytes_per_second; }

 private:
  void Run(const Work& work, const std::string& local, const FilesIdentity& identity) {
    FetchReport report = first_;
    const Bringing bringing = {.local = local,
                               .identity = identity,
                               .progress =
                                   [&](const FetchReport& now) {
                                     report = now;
                                     reports_.Send(report, &stopped_);
                                   },
                               .stopped = [&] { return stopped_.HasBeenNotified(); },
                               .pause = [&](absl::Duration pause) { (void)stopped_.WaitForNotificationWithTimeout(pause); },
                               .bytes_per_second = [&] { return bytes_per_second_.load(); }};
    SendEnd(reports_, report, work(bringing), &stopped_);
  }

  const FetchReport first_;
  Reports& reports_;
  std::atomic<int64_t> bytes_per_second_{0};
  absl::Notification stopped_;
  std::thread thread_;
};

// A line of the worker's log, in one piece.
void Say(const std::string& text) { std::cerr << absl::StrCat(CleanLine(text), "\n"); }

// That copies which were begun take already: they do not ask for this room again.
int64_t BytesOfParts(const std::string& checkpoints) {
  int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(checkpoints, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat found {};
    const bool is_one = entry->path().extension() == ".part" && ::lstat(entry->path().c_str(), &found) == 0;
    if (is_one) bytes += int64_t{found.st_blocks} * 512;
  }
  return bytes;
}

// The job whose checkpoints are copied, or the input that is brought, whosever.
using CopyOf = std::pair<JobId, std::string>;

class FilesKeeper {
 public:
  FilesKeeper(std::string local, std::string address, std::string node)
      : local_(std::move(local)), address_(std::move(address)), node_(std::move(node)) {}

  // What fails here is tried again when the coordinator asks.
  void Begin() { (void)TakeFolder(); }

  void Obey(const CoordinatorCommand& command) {
    if (const auto* holdings = std::get_if<HoldingsCommand>(&command)) reports_.Send(Answer(*holdings));
    if (const auto* start = std::get_if<StartCommand>(&command)) Start(*start);
    if (const auto* stop = std::get_if<StopCommand>(&command)) {
      const auto fetch = fetches_.find(stop->job);
      if (fetch != fetches_.end() && fetch->second->first().epoch <= stop->epoch) fetches_.erase(fetch);
    }
    if (const auto* copy = std::get_if<CopyCommand>(&command)) Copy(*copy);
    if (const auto* drop = std::get_if<DropCommand>(&command)) Drop(*drop);
  }

 private:
  // The folder is this process's alone, as long as it lives.
  absl::Status TakeFolder() {
    if (lock_.get() >= 0) return absl::OkStatus();
    MOTLEY_RETURN_IF_ERROR(CheckMounted(local_));  // or what it holds would seem to be lost
    MOTLEY_RETURN_IF_ERROR(MakeFolders(local_));
    const std::string path = local_ + kLockName;
    FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (lock.get() < 0) return FileError(errno, "write", path);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return FileError(errno, "lock", path);
      return absl::FailedPreconditionError(
          absl::StrCat("another worker keeps its files in ", local_, "; give each worker a [files] local of its own"));
    }
    lock_ = std::move(lock);
    HoldToFolder();
    return absl::OkStatus();
  }

  // As long as the process has one thread, whose children inherit it.
  void HoldToFolder() {
    const absl::StatusOr<int> version = LandlockVersion();
    if (!version.ok() || *version < kLandlockThatLinks) return;
    absl::StatusOr<std::vector<FileDescriptor>> held = RestrictFiles(GrantsOfRank({{}, {local_}}));
    if (held.ok()) places_ = *std::move(held);
  }

  absl::Status Serve() {
    MOTLEY_RETURN_IF_ERROR(TakeFolder());
    if (identity_ == nullptr) {
      MOTLEY_ASSIGN_OR_RETURN(FilesIdentity made, MakeFilesIdentity(clock_.WallNow()));
      identity_ = std::make_unique<const FilesIdentity>(std::move(made));
    }
    if (server_ != nullptr) return absl::OkStatus();
    MOTLEY_ASSIGN_OR_RETURN(server_, FilesServer::Start(local_, address_, *identity_, clock_));
    return absl::OkStatus();
  }

  HoldingsReport Answer(const HoldingsCommand& command) {
    HoldingsReport report{command.job, command.epoch, command.check_id};
    const absl::Status looked = Look(command, report);
    report.error = CleanLine(std::string(looked.message()));
    report.error_code = looked.code();
    return report;
  }

  // A disk that fails keeps them, and the coordinator asks again.
  void RemoveUnwantedFiles(const HoldingsCommand& command, HoldingsReport& report) {
    for (const UnwantedFiles& unwanted : command.unwanted) {
      if (unwanted.kept.empty()) copies_.erase(CopyOf(unwanted.job, ""));  // nobody waits for them any more
      const absl::Status removed = RemoveUnwanted(local_, unwanted);
      if (removed.ok()) {
        report.gone.push_back(unwanted);
      } else {
        Say(absl::StrCat("files of deleted job ", CleanLine(unwanted.job.value()), " stay: ", removed.message()));
      }
    }
  }

  void List(HoldingsReport& report) const {
    report.listed = ListDisk(local_);
    if (report.listed.size() <= kMostListed) return;
    report.unlisted = static_cast<int>(report.listed.size() - kMostListed);
    report.listed.resize(kMostListed);
  }

  absl::Status Look(const HoldingsCommand& command, HoldingsReport& report) {
    if (command.job_uid.empty()) {
      MOTLEY_RETURN_IF_ERROR(Serve());
      if (!command.files_secret.empty()) server_->SetSecret(command.files_secret);
      RemoveUnwantedFiles(command, report);
      if (command.list) List(report);
      MOTLEY_RETURN_IF_ERROR(MakeFolders(InputsFolder(local_)));
      NoteWanted(local_, command.inputs);
      report.inputs = WholeInputs(local_, command.inputs);
      if (!command.inputs.empty()) report.part_bytes = BytesOfPartInput(local_, command.inputs.front());
      return SayWhere(BytesOfPartInputs(local_), report);
    }
    MOTLEY_RETURN_IF_ERROR(CheckName("the job's id", command.job.value()));
    if (!IsJobUid(command.job_uid.value())) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(command.job_uid.value()), " is no job's uid"));
    }
    MOTLEY_RETURN_IF_ERROR(Serve());
    if (!command.files_secret.empty()) server_->SetSecret(command.files_secret);
    const std::string folder = LocalCheckpoints(local_, command.job, command.job_uid);
    if (!command.only_look) MOTLEY_RETURN_IF_ERROR(ProveThatItWrites(folder));
    MOTLEY_ASSIGN_OR_RETURN(report.held, LookForHeldCheckpoints(folder, command.job_uid));
    return SayWhere(BytesOfParts(folder), report);
  }

  absl::Status ProveThatItWrites(const std::string& folder) const {
    MOTLEY_RETURN_IF_ERROR(MakeFolders(folder));
    MOTLEY_RETURN_IF_ERROR(WriteFileDurably(folder + kProofName, node_));
    return ::unlink((folder + kProofName).c_str()) == 0 ? absl::OkStatus() : FileError(errno, "remove", folder + kProofName);
  }

  // By whom files are given, and the room that there is beside what has taken its own already.
  absl::Status SayWhere(int64_t bytes_of_parts, HoldingsReport& report) const {
    report.port = server_->port();
    report.certificate = identity_->digest;
    std::error_code ignored;
    const std::filesystem::space_info space = std::filesystem::space(local_, ignored);
    const auto free = static_cast<int64_t>(space.available), kept = static_cast<int64_t>(space.capacity / kKeptFree);
    report.free_bytes = ignored ? 0 : std::max<int64_t>(free - kept + bytes_of_parts, 1);
    return absl::OkStatus();
  }

  void Start(const StartCommand& command) {
    if (command.ranks.empty()) return;
    const RankAssignment& first = command.ranks.front();
    fetches_.erase(first.job);
    Work work = [command](const Bringing& bringing) {
      return command.source.name.empty() ? absl::OkStatus() : Stage(command, bringing);
    };
    Begin(fetches_, first.job, {first.job, first.epoch}, std::move(work));
  }

  void Copy(const CopyCommand& command) {
    const CopyOf of(command.input.empty() ? command.job : JobId(), command.input);
    const bool called_off = command.input.empty() ? command.files.empty() : command.copy_id.empty();
    if (called_off) return (void)copies_.erase(of);
    FetchReport first{command.job, command.epoch};
    first.copy_id = command.copy_id;
    first.input = command.input;
    const auto before = copies_.find(of);
    if (before == copies_.end() || before->second->first().copy_id != command.copy_id) {
      copies_.erase(of);
      Begin(copies_, of, std::move(first), [command](const Bringing& bringing) {
        return command.input.empty() ? KeepCopies(command, bringing) : BringInputFromNodes(command, bringing);
      });
    }
    if (const auto begun = copies_.find(of); begun != copies_.end()) begun->second->Limit(command.bytes_per_second);
  }

  void Drop(const DropCommand& command) {
    const absl::Status dropped = DropCheckpoints(command, local_);
    if (!dropped.ok() && !absl::IsNotFound(dropped)) {
      Say(absl::StrCat("old checkpoints of job ", command.job.value(), " stay: ", dropped.message()));
    }
  }

  template <typename Key>
  void Begin(std::map<Key, std::unique_ptr<Fetch>>& among, const Key& key, FetchReport first, Work work) {
    const absl::Status serves = Serve();
    if (!serves.ok()) return SendEnd(reports_, std::move(first), serves);
    among[key] = std::make_unique<Fetch>(std::move(first), std::move(work), local_, *identity_, reports_);
  }

  const std::string local_, address_, node_;
  const SystemClock clock_;
  FileDescriptor lock_;
  std::vector<FileDescriptor> places_;
  std::unique_ptr<const FilesIdentity> identity_;
  std::unique_ptr<FilesServer> server_;
  Reports reports_;
  // The newest of each, also when it is over.
  std::map<JobId, std::unique_ptr<Fetch>> fetches_;
  std::map<CopyOf, std::unique_ptr<Fetch>> copies_;
};

}  // namespace

int FilesChildMain(int argc, char** argv) {
  RequireTls13();
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/1);
  if (argc < 5) return 65;
  (void)setpriority(PRIO_PROCESS, 0, kNice);
  // The last of those who get the disk by turns. Not the idle class: on a disk that is never idle a start would wait for ever.
  (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NR - 1));
  umask(kPrivate);
  FilesKeeper process(argv[2], argv[3], argv[4]);
  process.Begin();
  FrameDecoder decoder;
  while (true) {
    const absl::StatusOr<std::string> frame = ReadFrame(kChildSocket, decoder);
    v1::CoordinatorMessage message;
    if (!frame.ok() || !message.ParseFromString(*frame)) return 0;
    const auto command = wire::FromProto(message);
    if (command.ok() && *command) process.Obey(**command);
  }
}

}  // namespace motley::worker
