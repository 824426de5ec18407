// The paths of a job whose checkpoints lie on its nodes' disks: the coordinator names checkpoints, this node knows where they
// are. Ranks get paths and know nothing of it. docs/inside/local-storage.md
#pragma once

#include <string>
#include <vector>

#include "common/session/session.h"

namespace motley::worker {

// Whether the ranks' checkpoints lie on their nodes' disks.
bool IsLocal(const StartCommand& command);
// With this node's paths, beneath its [files] local: where its ranks save, and what they go on from.
void Localize(const std::string& local, StartCommand& command);

// Of any job: paths of inputs as they are here (common/job/job_input.h). Others stay as they are.
void LocalizeInputs(const std::string& local, RankAssignment& rank);
void LocalizeInputs(const std::string& local, StorageCheckCommand& check);
// The folders of inputs beneath which these paths, which are localized, lie: for whoever may read them.
std::vector<std::string> InputRoots(const std::string& local, const std::vector<std::string>& paths);

}  // namespace motley::worker
