// What the nodes should hold of a job's checkpoints, from what they hold: first copies, repairs, and what keep_latest_k deletes
// are the differences. Pure. docs/inside/local-storage.md
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/session/files.h"
#include "coordinator/state/holdings.h"
#include "coordinator/state/job.h"

namespace motley::coordinator {

struct CopyScene {
  const Holdings& held;         // by the nodes that are here
  std::set<NodeName> training;  // they take what earlier generations saved without them
  Epoch epoch;                  // the job's newest
  int64_t copies = 1, keep_latest = 2;
  std::string safe;         // the newest checkpoint that was safe; empty: none was
  std::string copying;      // begun last; empty: none was
  bool under_way = false;   // and nodes are at it
  std::string in_use = {};  // from which the job went on, or that it saved last
  std::set<std::string> damaged = {};
  std::set<NodeName> leaving = {};  // what they have does not count, and they take nothing
  std::set<NodeName> failed = {};   // the newest copy failed there: others are asked first
  GoBack go_back = {};
};

struct CopyPlan {
  std::string safe;                                    // the newest that is or was
  int safe_nodes = 0;                                  // on so many nodes lies each of its files, where that is safe now
  std::string copy;                                    // whose files are to be copied; empty: none's
  std::map<NodeName, std::vector<std::string>> files;  // of that: which to whom
  std::map<NodeName, std::vector<DroppedCheckpoint>> drops;
  int missing = 0;    // copies of files that the newest usable one lacks, those being made, too
  std::string lacks;  // why there are fewer copies than asked for; empty: there are not, or they can be made
};

// A checkpoint is safe where each of its files lies on 1 + copies nodes, or on all that may have it: the nodes whose ranks saved
// it, here or not, those that have its manifest and, of what an earlier generation saved, those that train.
//   Copied is the newest that is whole and not safe; one that was begun ends before.
//   Dropped is what is older than the `keep_latest` newest safe ones, and what was never safe and is neither the newest whole
//   one,
// nor newer, nor being copied, nor in use. What was not given its name goes when it is older than a safe one and of an earlier
// generation than the newest; what people gave up, when one is safe that was saved since.
// Of a partial view less is dropped, never more: an absent node's files are missing from what makes checkpoints safe.
CopyPlan DecideCopies(const CopyScene& scene);

}  // namespace motley::coordinator
