#include "worker/files/bring.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_folders.h"
#include "common/checkpoint/checkpoint_manifest.h"

namespace motley::worker {
namespace {

// Who has many readers before it is asked again and again for some minutes: that is how long they may take.
constexpr int kMostTries = 300;  // in a row
// Who gives less is left where another one has the file.
constexpr int64_t kLeastBytesPerSecond = 64 << 10;
constexpr absl::Duration kTryPause = absl::Seconds(1);
constexpr absl::Duration kProgressPause = absl::Seconds(1);

// Of what came from it.
absl::Status SaidOf(const CheckpointHolder& holder, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("node ", holder.node.value(), ": ", std::string(status.message())));
}

}  // namespace

void RatePacer::Came(int64_t bytes) {
  const int64_t rate = bringing_.bytes_per_second();
  if (rate <= 0) return;
  const absl::Duration now = clock_.Now();
  next_ = std::max(next_, now) + absl::Seconds(static_cast<double>(bytes) / static_cast<double>(rate));
  if (next_ > now) bringing_.pause(next_ - now);
}

absl::Status ReadPatiently(const CheckpointHolder& holder, const FilesReading& reading, const Bringing& bringing,
                           const std::string& file, const std::vector<int64_t>& blocks,
                           const std::function<absl::Status(int64_t, std::string_view)>& take, const std::function<void()>& say) {
  for (int tries = 1;; ++tries) {
    if (bringing.stopped()) return absl::CancelledError("stopped");
    const std::vector<int64_t> left = blocks;  // `take` changes it
    bool taken = true;                         // a disk that is full here says the same as a holder with many readers
    const absl::Status read = ReadBlocks(holder, reading, file, left, [&](int64_t block, std::string_view bytes) {
      const absl::Status status = take(block, bytes);
      taken = status.ok();
      tries = 1;
      return status;
    });
    if (!taken || !absl::IsResourceExhausted(read) || tries == kMostTries) return read;
    say();
    bringing.pause(kTryPause);
  }
}

CheckpointBringer::CheckpointBringer(const CheckpointSource& source, LocalCheckpoint checkpoint, FetchReport report,
                                     const Bringing& bringing)
    : source_(source),
      checkpoint_(std::move(checkpoint)),
      bringing_(bringing),
      reading_{bringing.identity, checkpoint_.job, source.name},
      rate_(bringing),
      report_(std::move(report)),
      said_at_(clock_.Now()) {
  reading_.stopped = bringing.stopped;
  reading_.came = [this](int64_t bytes) { rate_.Came(bytes); };
}

void CheckpointBringer::Say() {
  said_at_ = clock_.Now();
  bringing_.progress(report_);
}

bool CheckpointBringer::SayAndAsk() {
  if (clock_.Now() - said_at_ >= kProgressPause) Say();
  return bringing_.stopped();
}

void CheckpointBringer::NoteDamaged(const NodeName& node, const std::string& file) {
  if (!absl::c_linear_search(report_.damaged_files, DamagedFile{node, file})) report_.damaged_files.push_back({node, file});
}

absl::StatusOr<MeantManifest> CheckpointBringer::Parse(std::string text) const {
  MeantManifest manifest = {.text = std::move(text), .read = {}};
  const std::string name = absl::StrCat(kManifestName, " of ", source_.name);
  MOTLEY_ASSIGN_OR_RETURN(manifest.read, ManifestFromJson(manifest.text, name));
  if (ManifestDigest(manifest.text) == source_.manifest_digest) return manifest;
  return absl::FailedPreconditionError(absl::StrCat(name, " is another one than the job goes on from"));
}

absl::StatusOr<MeantManifest> CheckpointBringer::OwnManifest() const {
  MOTLEY_ASSIGN_OR_RETURN(const FileDescriptor file, OpenCheckpointFile(bringing_.local, checkpoint_, ""));
  MOTLEY_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(file, kManifestName, kMostManifestBytes));
  return Parse(std::move(text));
}

absl::StatusOr<MeantManifest> CheckpointBringer::FindManifest() {
  absl::StatusOr<MeantManifest> found = OwnManifest();
  const bool own = found.ok(), another = absl::IsFailedPrecondition(found.status());
  std::vector<absl::Status> said;
  if (!own && !absl::IsNotFound(found.status()))
    said.push_back(absl::Status(found.status().code(), absl::StrCat("this node: ", std::string(found.status().message()))));
  for (const CheckpointHolder& holder : source_.holders) {
    if (found.ok()) break;
    if (!holder.manifest || holder.address.empty()) continue;
    std::string text;
    const absl::Status read = ReadPatiently(
        holder, reading_, bringing_, "", {0},
        [&](int64_t, std::string_view bytes) {
          text = bytes;
          return absl::OkStatus();
        },
        [this] { Say(); });
    if (absl::IsCancelled(read)) return read;
    found = read.ok() ? Parse(std::move(text)) : read;
    if (!found.ok()) said.push_back(read.ok() ? SaidOf(holder, found.status()) : read);
  }
  if (!found.ok()) return NotBrought(kManifestName, said);
  MOTLEY_RETURN_IF_ERROR(CheckIsMeant(found->read));
  found->own = own;
  found->own_is_another = another;
  return found;
}

// By its digest it is the one that the coordinator means; this is what it says of itself.
absl::Status CheckpointBringer::CheckIsMeant(const CheckpointManifest& manifest) const {
  const std::optional<CheckpointFolder> folder = ParseCheckpointFolder("", source_.name);
  const std::string name = absl::StrCat(kManifestName, " of ", source_.name);
  if (!folder || manifest.job_uid != checkpoint_.job_uid || manifest.step != folder->step || manifest.epoch != folder->epoch) {
    return absl::FailedPreconditionError(absl::StrCat(name, " is of step ", manifest.step, " and generation ", manifest.epoch,
                                                      " of the job with the uid '", manifest.job_uid.value(), "', not of '",
                                                      checkpoint_.job_uid.value(), "'"));
  }
  if (!manifest.is_local()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " has format ", manifest.format_version, ", which no checkpoint on the nodes' disks has"));
  }
  for (const CheckpointFile& file : manifest.files) {
    if (const absl::Status named = CheckRankFile(file.name); !named.ok()) {
      return absl::DataLossError(absl::StrCat(name, ": ", std::string(named.message())));
    }
  }
  return absl::OkStatus();
}

// Behind this holder.
bool CheckpointBringer::HasAnother(const CheckpointHolder* holder, const std::string& file) const {
  const CheckpointHolder* const end = source_.holders.data() + source_.holders.size();
  return std::any_of(holder + 1, end, [&](const CheckpointHolder& other) {
    return !other.address.empty() && absl::c_linear_search(other.files, file);
  });
}

absl::Status CheckpointBringer::Bring(const CheckpointFile& file, std::vector<int64_t> blocks, ResumeFile& into) {
  std::vector<absl::Status> said;
  absl::Status put;
  const auto take = [&](int64_t block, std::string_view bytes) {
    put = into.Put(block, bytes);
    if (!put.ok()) return put;
    std::erase(blocks, block);
    report_.bytes_here += BytesOfBlock(file, block);
    if (clock_.Now() - said_at_ >= kProgressPause) Say();
    return put;
  };
  // False: it goes on with the next one.
  const auto ask = [&](const CheckpointHolder& holder, int64_t least) -> absl::StatusOr<bool> {
    put = absl::OkStatus();
    reading_.least_bytes_per_second = least;
    const absl::Status read = ReadPatiently(holder, reading_, bringing_, file.name, blocks, take, [this] { Say(); });
    if (read.ok()) return true;
    // What cannot be written here is not the holder's fault.
    if (absl::IsCancelled(read) || (!put.ok() && !absl::IsDataLoss(put))) return read;
    if (absl::IsDataLoss(read)) {
      NoteDamaged(holder.node, file.name);
      Say();
    }
    said.push_back(put.ok() ? read : SaidOf(holder, read));
    return false;
  };
  std::vector<const CheckpointHolder*> hurried;
  for (const CheckpointHolder& holder : source_.holders) {
    if (blocks.empty()) break;
    if (holder.address.empty() || !absl::c_linear_search(holder.files, file.name)) continue;
    const bool has_another = HasAnother(&holder, file.name);
    MOTLEY_ASSIGN_OR_RETURN(const bool done, ask(holder, has_another ? kLeastBytesPerSecond : 0));
    if (done) break;
    if (has_another && absl::IsUnavailable(said.back())) hurried.push_back(&holder);
  }
  // Those behind a slow one may have been no better: a slow way is better than none.
  for (const CheckpointHolder* holder : hurried) {
    if (blocks.empty()) break;
    MOTLEY_ASSIGN_OR_RETURN(const bool done, ask(*holder, 0));
    if (done) break;
  }
  return blocks.empty() ? absl::OkStatus() : NotBrought(file.name, said);
}

absl::Status CheckpointBringer::NotBrought(const std::string& file, const std::vector<absl::Status>& said) const {
  const std::string what = absl::StrCat(file, " of ", source_.name, " could not be brought: ");
  if (said.empty()) return absl::NotFoundError(absl::StrCat(what, "no node that is here has it"));
  bool gone = true, damaged = false;
  for (const absl::Status& status : said) {
    damaged |= absl::IsDataLoss(status);
    gone &=
        absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsOutOfRange(status) || absl::IsFailedPrecondition(status);
  }
  const absl::StatusCode code = !gone     ? absl::StatusCode::kUnavailable
                                : damaged ? absl::StatusCode::kDataLoss
                                          : absl::StatusCode::kNotFound;
  return absl::Status(code, absl::StrCat(what, absl::StrJoin(said, "; ", [](std::string* out, const absl::Status& status) {
                                           out->append(std::string(status.message()));
                                         })));
}

}  // namespace motley::worker
