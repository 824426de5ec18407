// Brings what a checkpoint of other nodes' disks has: its manifest and blocks of its files, from one holder after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/resume_folder.h"
#include "common/session/files.h"
#include "worker/files/checkpoint_file.h"
#include "worker/files/files_identity.h"
#include "worker/files/files_reader.h"

namespace motley::worker {

// Who brings, and who hears of it.
struct Bringing {
  std::string local;  // [files] local
  const FilesIdentity& identity;
  std::function<void(const FetchReport&)> progress;      // before the first block, about once a second, and when all is here
  std::function<bool()> stopped = [] { return false; };  // CANCELLED soon after
  std::function<void(absl::Duration)> pause = absl::SleepFor;    // before a holder to which too many came is asked again
  std::function<int64_t()> bytes_per_second = [] { return 0; };  // at most, of blocks; 0: as fast as it goes
};

// Of what would be said too often: once a second.
class ProgressPacer {
 public:
  bool Due() {
    const absl::Duration now = clock_.Now();
    if (now - said_at_ < absl::Seconds(1)) return false;
    said_at_ = now;
    return true;
  }

 private:
  const SystemClock clock_;
  absl::Duration said_at_ = clock_.Now();
};

// Of parts as they come: waits where more come than the rate allows. What is read meanwhile waits in the holder's socket.
class RatePacer {
 public:
  explicit RatePacer(const Bringing& bringing) : bringing_(bringing) {}
  void Came(int64_t bytes);

 private:
  const Bringing& bringing_;
  const SystemClock clock_;
  absl::Duration next_;  // when more may come
};

// ReadBlocks, and again as long as something comes, and some minutes, where a holder says that it has too many readers, or that a
// block comes to it still; `say` is called before each pause.
absl::Status ReadPatiently(const CheckpointHolder& holder, const FilesReading& reading, const Bringing& bringing,
                           const std::string& file, const std::vector<int64_t>& blocks,
                           const std::function<absl::Status(int64_t, std::string_view)>& take, const std::function<void()>& say);

// A manifest as it came, and what it says.
struct MeantManifest {
  std::string text;
  CheckpointManifest read;
  bool own = false;             // this node has it
  bool own_is_another = false;  // this node has another one by that name: the files beside it are not of this checkpoint
};

// By one thread.
class CheckpointBringer {
 public:
  // Of what `report` says. `source` and `bringing` live as long as this.
  CheckpointBringer(const CheckpointSource& source, LocalCheckpoint checkpoint, FetchReport report, const Bringing& bringing);

  // This node's own, or the first holder's that has the digest of the source. One of another job, step or generation than its
  // name says, or that names files which are no ranks', is refused: FAILED_PRECONDITION, DATA_LOSS. Errors as Bring's.
  absl::StatusOr<MeantManifest> FindManifest();
  // That so many bytes will be brought: before the first block.
  void Expect(int64_t bytes) { report_.bytes += bytes; }
  // These blocks of the file, each verified as it is put into `into`: from the next holder where one fails; what came is not
  // asked for again. Errors name the file, and what each holder said. UNAVAILABLE: one does not answer, or not now; NOT_FOUND,
  // DATA_LOSS: none has it, or has it whole; CANCELLED; Fault::kStorage: this node's disk.
  absl::Status Bring(const CheckpointFile& file, std::vector<int64_t> blocks, ResumeFile& into);
  // A file, this node's own where the node's name is empty, does not hold what the manifest says.
  void NoteDamaged(const NodeName& node, const std::string& file);
  void Say();
  // The same once a second, for what takes long and brings nothing. Returns what bringing.stopped says.
  bool SayAndAsk();

 private:
  absl::StatusOr<MeantManifest> Parse(std::string text) const;
  absl::StatusOr<MeantManifest> OwnManifest() const;
  absl::Status CheckIsMeant(const CheckpointManifest& manifest) const;
  bool HasAnother(const CheckpointHolder* holder, const std::string& file) const;
  absl::Status NotBrought(const std::string& file, const std::vector<absl::Status>& said) const;

  const CheckpointSource& source_;
  const LocalCheckpoint checkpoint_;
  const Bringing& bringing_;
  FilesReading reading_;
  RatePacer rate_;
  FetchReport report_;
  const SystemClock clock_;
  absl::Duration said_at_;
};

}  // namespace motley::worker
