// What coordinator and worker say to each other of files on the nodes' disks. docs/inside/local-storage.md
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/checkpoint/held_checkpoints.h"
#include "common/session/files_ticket.h"

namespace motley {

// ---- to a worker ----
// Of a job that was deleted: all that lies on a node's disk of it.
struct UnwantedFiles {
  JobId job;
  JobUid uid;   // empty: of all jobs that had the id, but
  JobUid kept;  // of this one, which has it now
  friend auto operator<=>(const UnwantedFiles&, const UnwantedFiles&) = default;
};
struct HoldingsCommand {
  JobId job;
  Epoch epoch;
  JobUid job_uid;
  std::string check_id;
  std::string files_secret;                  // by which tickets for this node are proven, until another one is told
  std::vector<std::string> inputs = {};      // which of these are whole here? Without a job_uid that is all that is asked
  bool list = false;                         // what lies here, of all jobs?
  std::vector<UnwantedFiles> unwanted = {};  // delete these first
  bool only_look = false;                    // nothing of the job is to be kept here: its folder is not made
};
// One that has the checkpoint from which ranks go on, or a part of it.
struct CheckpointHolder {
  NodeName node;
  std::string address;      // host:port; empty: the reader itself
  std::string certificate;  // SHA-256 (hex) of what it shows
  FilesTicket ticket;       // that it admits the reader by
  bool manifest = false;    // has it; of an input: has it whole, and else it comes there
  std::vector<std::string> files;
  friend bool operator==(const CheckpointHolder&, const CheckpointHolder&) = default;
};
struct CheckpointSource {
  std::string name;  // empty: the ranks go on from none
  std::string manifest_digest, mark;
  std::vector<CheckpointHolder> holders;
  bool verify = false;  // somebody found damage: own files are compared with the manifest, or an input's list, before
  JobId job = {};       // of a job that begins with another one's weights: whose it is; empty: the job's own
  JobUid job_uid = {};
  friend bool operator==(const CheckpointSource&, const CheckpointSource&) = default;
};

// Keep these files of the checkpoint on this node's disk, too, with its manifest. The same copy_id again changes the limit alone.
// Without files: what was begun for the job is called off, and not answered.
struct CopyCommand {
  JobId job;
  Epoch epoch;
  JobUid job_uid;
  std::string copy_id;
  CheckpointSource source;
  std::vector<std::string> files;
  int64_t bytes_per_second = 0;  // at most; 0: as fast as it goes
  // Instead: bring this one, from the source's holders; `files`: inputs that jobs read still. Without copy_id: it is called off.
  std::string input = {};
};
struct DroppedCheckpoint {
  Epoch epoch;
  int64_t step = 0;
  std::string manifest_digest;  // only with this manifest; empty: what was not given its published name
  friend bool operator==(const DroppedCheckpoint&, const DroppedCheckpoint&) = default;
};
// Delete these of the job on this node's disk.
struct DropCommand {
  JobId job;
  Epoch epoch;
  JobUid job_uid;
  std::vector<DroppedCheckpoint> checkpoints;
};

// Dial the coordinator for this carry, and give what is read there of the file.
struct CarryCommand {
  JobId job;
  Epoch epoch;
  JobUid job_uid;
  std::string carry_id;
  std::string checkpoint;                     // its name
  std::string file;                           // "rank-0.bin", "base-0123456789abcdef/base.json"; empty: the manifest
  std::string input = {};                     // instead: take this one, by reading
  std::vector<std::string> kept_inputs = {};  // that jobs read still
  std::string path = {};                      // where it may lie here, too: what its list says of a block is taken from there
};

// ---- from a worker ----
// One thing on a node's disk: a checkpoint, what else a job left, or an input.
struct ListedFiles {
  JobId job;  // empty: of an input
  JobUid uid;
  std::string name;     // "step-00000040-gen-3", "tb"; of an input "tokens.txt"
  std::string input;    // its id
  int64_t bytes = 0;    // that it takes of the disk
  bool coming = false;  // an input that is not whole
};
struct HoldingsReport {
  JobId job;
  Epoch epoch;
  std::string check_id;
  std::string error;  // empty = fine; else why this node can keep no checkpoints
  absl::StatusCode error_code = absl::StatusCode::kOk;
  HeldCheckpoints held;
  int port = 0;                          // on the node's data address, of its files process
  std::string certificate;               // SHA-256 (hex) of what that shows
  int64_t free_bytes = 0;                // that copies may fill; 0 = not known
  std::vector<std::string> inputs = {};  // that are whole here
  int64_t part_bytes = 0;                // that lie here of the first asked input, where that is not whole
  std::vector<ListedFiles> listed = {};
  int unlisted = 0;                      // so many more lie here
  std::vector<UnwantedFiles> gone = {};  // of those that were to be deleted
};
// Of the checkpoint that was to be brought: its bytes are not what the manifest says.
struct DamagedFile {
  NodeName node;  // that gave it; empty: the sender's own
  std::string file;
  friend bool operator==(const DamagedFile&, const DamagedFile&) = default;
};
// How far a node is with bringing what its ranks go on from, or a copy.
struct FetchReport {
  JobId job;
  Epoch epoch;
  int64_t bytes = 0, bytes_here = 0;
  bool done = false;
  std::string error;  // not empty: it could not be brought, and ranks that wait for it were not started
  absl::StatusCode error_code = absl::StatusCode::kOk;
  std::string copy_id = {};  // of a CopyCommand; empty: of a start
  std::vector<DamagedFile> damaged_files = {};
  std::string input = {};  // of a CopyCommand that was for one
};

}  // namespace motley
