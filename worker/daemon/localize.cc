#include "worker/daemon/localize.h"

#include "worker/files/job_folder.h"

namespace motley::worker {

bool IsLocal(const StartCommand& command) { return !command.ranks.empty() && IsOnNodesDisks(command.ranks[0].config.checkpoint); }

void Localize(const std::string& local, StartCommand& command) {
  for (RankAssignment& rank : command.ranks) {
    rank.config.checkpoint.folder = LocalCheckpoints(local, rank.job, rank.job_uid);
    // What a job begins with lies where its path says.
    if (!command.source.name.empty()) rank.resume_from = ResumeFolder(local, rank.job, rank.job_uid, command.source.name);
  }
}

}  // namespace motley::worker
