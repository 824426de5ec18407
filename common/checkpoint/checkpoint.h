// The checkpoint's format, torch-free: a folder of named tensors' ranges, its manifest written last. Topology-free: any
// plan reads what any plan wrote. docs/use/checkpoints.md. A folder is the truth about itself.
//
//   step-00000040-gen-3/
//     manifest.json        format version, job and its uid, epoch, step, model config, seed, data digest, files with size and
//                          digests of their blocks, and a digest of itself
//     rank-0.bin ...       raw little-endian arrays: for each owned range parameter, exp_avg, exp_avg_sq
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/base/files.h"
#include "common/checkpoint/checkpoint_fence.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/model_card.h"
#include "common/model/model.h"
#include "common/weights/safetensors_plan.h"

namespace motley {

enum class StateTensor { kParameter = 0, kExpAvg = 1, kExpAvgSq = 2 };
inline constexpr int kNumStateTensors = 3;

// What a reader reads and verifies at once.
inline constexpr int64_t kCheckpointBlockBytes = int64_t{4} << 20;

// Since 3 arrays are in the order of common/model/parameters.h; before, in HuggingFace's (common/checkpoint/old_order.h).
inline constexpr int kNewestCheckpointFormat = 4, kFirstFormatInStorageOrder = 3;
// Those of one folder that all nodes share are written as 3, which builds from before checkpoint.storage read. Of a checkpoint
// whose files lie on the nodes' disks such a build says that it is newer, and deletes nothing.
inline constexpr int kSharedCheckpointFormat = 3, kLocalCheckpointFormat = 4;

// One contiguous piece of one unit's state in one file: elements [begin, end) of the unit's flat array.
struct CheckpointPiece {
  int unit = 0;
  StateTensor tensor = StateTensor::kParameter;
  int64_t begin = 0, end = 0;
  int64_t file_offset = 0;  // bytes
};
struct CheckpointFile {
  std::string name;
  std::string node;  // of a local checkpoint: whose rank wrote it, on its own disk
  int64_t bytes = 0;
  std::string digest;               // format 1: SHA-256 of the file
  std::vector<std::string> blocks;  // since format 2: SHA-256 of each kCheckpointBlockBytes of it; the last may be shorter
  std::vector<CheckpointPiece> pieces;
};
struct CheckpointManifest {
  int format_version = kSharedCheckpointFormat;  // older ones are read, and not written any more
  std::string job;
  JobUid job_uid;  // empty: ranks of a build from before uids wrote it
  int64_t epoch = 0;
  int64_t step = 0;  // optimizer steps done: also the data position
  ModelShape model;
  DType dtype = DType::kFloat32;
  int64_t seed = 0;
  std::string data_digest;
  int64_t skipped_steps = 0;        // of `step`: without an update, for an overflow in float16
  double loss_scale = 0;            // of the next step in float16; 0 = the job computed in another type
  int64_t steps_at_loss_scale = 0;  // since it changed
  std::string base;                 // name of a folder beside (common/weights/base_model.h); empty: there is none
  std::vector<CheckpointFile> files;
  // Its files lie on the nodes' disks, each on that of the node that it names. docs/inside/local-storage.md
  bool is_local() const { return format_version == kLocalCheckpointFormat; }
};

// Writes one rank's file into `folder` (created if missing; what it lies in is not): header-free arrays in the order given,
// digests while writing, fsync. A full disk is RESOURCE_EXHAUSTED, a limit of a file's size OUT_OF_RANGE; both name folder and
// bytes. Fault::kStorage, too: the folder that it lies in is not there, or goes meanwhile.
struct PieceData {
  int unit;
  StateTensor tensor;
  int64_t begin, end;
  // Called when its turn has come to be written; what an earlier piece gave may be gone then. Of a device with a memory of its
  // own the host holds one piece at a time.
  std::function<const void*()> data;
};
absl::StatusOr<CheckpointFile> WriteCheckpointFile(const std::string& folder, const std::string& file_name, DType dtype,
                                                   const std::vector<PieceData>& pieces);
std::string FileEntryToJson(const CheckpointFile& file);
absl::StatusOr<CheckpointFile> FileEntryFromJson(const std::string& json);

// Writes manifest.json into the temporary folder of the manifest's step and epoch under `root`, syncs, and gives the folder its
// published name: returns that path. Where another job's checkpoint has the name, it gets one with the job's uid, and the other
// stays as it is. Looks first at each of the manifest's files, name and size: without them all nothing is published
// (Fault::kStorage; who has patience looks before, common/checkpoint/checkpoint_look.h). Then asks; an answer that is old when
// the name is given does no harm (ListCheckpointFolders). FAILED_PRECONDITION: a newer epoch exists, by what the coordinator says
// or by a checkpoint that is there.
absl::StatusOr<std::string> PublishCheckpoint(const std::string& root, const CheckpointManifest& manifest,
                                              const CheckpointFence& fence);

// NOT_FOUND: no manifest (never finished). DATA_LOSS: cut off or altered, or no file (a named pipe is not waited for, a link not
// followed). FAILED_PRECONDITION: whole, and of a newer format. All name the file.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& folder);
// That the pieces cover every element once, and that every file is there with its size. Reads no contents. DATA_LOSS names the
// file; NOT_FOUND: it is not there.
absl::Status VerifyStructure(const std::string& folder, const CheckpointManifest& manifest);
// The same, and every byte of every file. A missing file is DATA_LOSS, too.
absl::Status VerifyCheckpoint(const std::string& folder, const CheckpointManifest& manifest);
// The three of a folder that is open (O_PATH does), whatever its name leads to by now; errors say `folder`.
absl::StatusOr<CheckpointManifest> ReadManifest(const FileDescriptor& at, const std::string& folder);
absl::Status VerifyStructure(const FileDescriptor& at, const std::string& folder, const CheckpointManifest& manifest);
absl::Status VerifyCheckpoint(const FileDescriptor& at, const std::string& folder, const CheckpointManifest& manifest);

struct FoundCheckpoint {
  std::string folder;
  CheckpointManifest manifest;
  std::vector<std::string> skipped;   // newer ones that are damaged, each with the reason
  std::vector<std::string> unjudged;  // folders of those that are not among `left_out`: nobody but this caller has looked at them
};
// Why whoever looks does not want a checkpoint; OK: it does.
using CheckpointFilter = std::function<absl::Status(const CheckpointManifest& manifest, const std::string& folder)>;
// That the owner's job made it; what it adopted is another's.
CheckpointFilter OnlyOf(CheckpointOwner owner);
// Newest checkpoint (ListCheckpointFolders) under `root` whose structure verifies, without those of the folders `left_out`
// ("<root>/step-00000040-gen-3": readers found them damaged). Who reads its contents verifies them
// (common/checkpoint/checkpoint_reader.h). No link is followed beneath `root`. Only proven damage skips a checkpoint, or
// `wanted`, or that it was renamed: others may put theirs there, and copies of any. NOT_FOUND: there is none; a folder of such a
// name without a manifest is none, and stands in `not_one` with the reason. FAILED_PRECONDITION of CheckName: none but renamed
// ones, and what `wanted` refused; its status: none but these. DATA_LOSS: there are, and none is left; names each. Others: one
// cannot be read now (Fault::kStorage), or is of a newer format.
absl::StatusOr<FoundCheckpoint> FindNewestCheckpoint(const std::string& root, const std::set<std::string>& left_out,
                                                     const CheckpointFilter& wanted = {},
                                                     std::vector<std::string>* not_one = nullptr);
// Of a path that people gave: one checkpoint's folder, or one of several, whose newest it is. A renamed one is none here, either.
absl::StatusOr<FoundCheckpoint> FindCheckpointAt(const std::string& folder, const std::set<std::string>& left_out,
                                                 const CheckpointFilter& wanted = {});
// Deletes what older epochs of the fence's job left unfinished and, unless `keep_latest` is 0, its published checkpoints beyond
// the newest `keep_latest` up to `newest_step`, the one just published. Only those count whose structure verifies. What another
// job wrote, or nobody knows who, without a manifest or renamed, stays as it is. Those of older epochs that are not below what a
// newer one saved go, too, or they would push out the good ones: they did not verify when the run resumed below them, or came too
// late. Only folders that are `spared` stay until the run has come to their steps: one reader alone found them damaged. Asks
// before each deletion, and deletes only what an epoch up to the fence's wrote. What cannot be read now stays.
// FAILED_PRECONDITION: a newer epoch exists. Bases that nothing names any more go, too (base_prune.h).
absl::Status PruneCheckpoints(const std::string& root, int64_t keep_latest, int64_t newest_step, const CheckpointFence& fence,
                              const std::set<std::string>& spared = {});

// Writes HuggingFace's layout. Of a checkpoint with a base (common/weights/base_model.h) in that one's names, types and small
// files; else config.json, float weights (a tied head left out as transformers does) and a tokenizer of bytes (byte_tokenizer.h).
// Weights are in model.safetensors, or in shards of at most `most_shard_bytes` with an index. README.md is a card with `facts`
// (model_card.h). ALREADY_EXISTS when out_folder holds a model or a README.md already, is no
// folder, or another export writes into it (export_folder.h). FAILED_PRECONDITION: the base is not there.
enum class VerifiedWhen {
  kFirst,   // all of it, before anything is written
  kAsRead,  // what is read of it: of a folder that has no more (ParameterBlocks)
};
absl::Status ExportHuggingFace(const std::string& checkpoint_folder, const std::string& out_folder, const CardFacts& facts = {},
                               int64_t most_shard_bytes = kMostShardBytes, VerifiedWhen verified = VerifiedWhen::kFirst);

}  // namespace motley
