#include "coordinator/periodic/backup.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "coordinator/store/backups.h"

namespace motley::coordinator {
namespace {

constexpr absl::Duration kLongest = absl::Minutes(5);

// Said when it begins and when it is over, not every minute between.
void Say(Core& core, const absl::Status& status) {
  const std::string problem = status.ok() ? "" : std::string(status.message());
  core.metrics.backup_failing.Set(status.ok() ? 0 : 1);
  if (problem == core.state.backup_problem) return;
  EventRecord event;
  event.kind = problem.empty() ? kind::kBackupWorks : kind::kBackupFailed;
  event.message = problem.empty() ? "the store is backed up again" : absl::StrCat("the store could not be backed up: ", problem);
  core.state.backup_problem = problem;
  core.Emit(std::move(event));
}

}  // namespace

void BackUp(Core& core) {
  BackupState& state = core.backup;
  if (core.config.backup_folder.empty() || core.stopping) return;
  if (state.under_way) {
    if (core.clock.Now() - *state.begun > kLongest)
      Say(core, absl::UnavailableError(
                    absl::StrCat("it does not end; does the file system of ", core.config.backup_folder, " answer?")));
    return;
  }
  const int64_t commits = core.store.mark().commits;
  if (commits == state.commits || (state.begun && core.clock.Now() - *state.begun < core.config.backup_every)) return;
  state.under_way = true;
  state.begun = core.clock.Now();
  const auto result = std::make_shared<absl::Status>();
  const int64_t unix_ms = core.journal.UnixMs();
  core.executor.RunApart(
      [result, state_folder = core.config.state_folder, folder = core.config.backup_folder, unix_ms,
       owner = BackupOwner{core.store.mark().store_id, core.term.number}] {
        *result = AddBackup(state_folder, folder, owner, unix_ms).status();
      },
      [&core, result, commits, unix_ms] {
        core.backup.under_way = false;
        if (result->ok()) {
          core.backup.commits = commits;
          core.metrics.last_backup_timestamp.Set(static_cast<double>(unix_ms) / 1e3);
        }
        Say(core, *result);
      });
}

}  // namespace motley::coordinator
