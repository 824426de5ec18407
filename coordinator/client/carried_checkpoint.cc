#include "coordinator/client/carried_checkpoint.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/mark_file.h"
#include "common/checkpoint/needed_blocks.h"
#include "common/checkpoint/resume_folder.h"
#include "common/weights/base_model.h"

namespace motley::client {
namespace {

namespace fs = std::filesystem;

constexpr int kMostBeginnings = 10;  // a job that saves each step of a small model drops what is read
constexpr absl::Duration kProgressPause = absl::Seconds(1);
// Of what is one block: a manifest (of 10 TB), a file of a base.
constexpr int64_t kMostSmallBytes = int64_t{256} << 20;

// One beginning.
class Carried {
 public:
  Carried(FileCarrier& carrier, JobId job, JobUid uid, std::string into, const std::function<void(const CarriedBytes&)>& progress)
      : carrier_(carrier), job_(std::move(job)), uid_(std::move(uid)), into_(std::move(into)), progress_(progress) {}

  absl::Status Begin() {
    v1::CarryBegun begun;
    const auto verify = [&](std::string_view bytes) -> absl::Status {
      const std::string text(bytes), name = absl::StrCat(kManifestName, " of ", CleanLine(begun.checkpoint()));
      MOTLEY_ASSIGN_OR_RETURN(manifest_, ManifestFromJson(text, name));
      if (ManifestDigest(text) == begun.manifest_sha256()) return absl::OkStatus();
      return absl::DataLossError(absl::StrCat(name, " is another one than the coordinator means"));
    };
    MOTLEY_ASSIGN_OR_RETURN(text_, ReadWhole("", "", verify, &begun));
    name_ = begun.checkpoint();
    const auto folder = ParseCheckpointFolder("", name_);
    const bool is_it = manifest_.job_uid == uid_ && manifest_.is_local() && folder && folder->published &&
                       folder->step == manifest_.step && folder->epoch == manifest_.epoch;
    if (!is_it) {
      return absl::DataLossError(absl::StrCat("what node ", CleanLine(begun.node()), " gave as ", CleanLine(name_),
                                              " is the manifest of another checkpoint"));
    }
    MOTLEY_RETURN_IF_ERROR(MakePlace());
    return begun.mark().empty() ? absl::OkStatus() : WriteMark(folder_, begun.mark());
  }

  absl::Status Bring(CarriedBlocks which) {
    const auto needed = ParameterBlocks(manifest_);
    std::vector<std::pair<ResumeFile, std::vector<int64_t>>> lacks;
    for (size_t f = 0; f < manifest_.files.size(); ++f) {
      const CheckpointFile& file = manifest_.files[f];
      MOTLEY_ASSIGN_OR_RETURN(ResumeFile made, ResumeFile::GoOn(folder_, file));
      MOTLEY_ASSIGN_OR_RETURN(std::vector<int64_t> lacking,
                              made.Lacking(which == CarriedBlocks::kAll ? AllBlocks(file) : needed[f], [] { return false; }));
      for (const int64_t block : lacking) bytes_.all += BytesOfBlock(file, block);
      lacks.emplace_back(std::move(made), std::move(lacking));
    }
    for (size_t f = 0; f < lacks.size(); ++f) {
      MOTLEY_RETURN_IF_ERROR(BringFile(manifest_.files[f], lacks[f].first, std::move(lacks[f].second)));
    }
    return manifest_.base.empty() ? absl::OkStatus() : BringBase();
  }

  FoundCheckpoint Found() const { return {folder_, manifest_, {}, {}}; }

 private:
  // What has another manifest, or another name, is of no use any more.
  absl::Status MakePlace() {
    folder_ = absl::StrCat(into_, "/", name_);
    const absl::StatusOr<std::string> there = ReadSmallFile(absl::StrCat(folder_, "/", kManifestName), kMostSmallBytes);
    if (there.ok() && *there == text_) return absl::OkStatus();
    std::error_code error;
    for (fs::directory_iterator entry(into_, error), end; !error && entry != end; entry.increment(error)) {
      MOTLEY_RETURN_IF_ERROR(RemoveTree(entry->path().string()));
    }
    return BeginResumeFolder(folder_, manifest_, text_, {}).status();
  }

  absl::Status BringFile(const CheckpointFile& file, ResumeFile& made, std::vector<int64_t> blocks) {
    v1::CarryBegun begun;
    const auto take = [&](int64_t block, std::string_view bytes) {
      MOTLEY_RETURN_IF_ERROR(made.Put(block, bytes));
      bytes_.here += BytesOfBlock(file, block);
      bytes_.node = begun.node();
      if (absl::Now() - said_ >= kProgressPause) said_ = absl::Now(), progress_(bytes_);
      return absl::OkStatus();
    };
    if (blocks.empty()) return absl::OkStatus();
    return carrier_.Read({job_.value(), name_, file.name, kCheckpointBlockBytes}, std::move(blocks), take, &begun);
  }

  absl::Status BringBase() {
    const std::string& base = manifest_.base;
    if (ReadBase(into_, base).ok()) return absl::OkStatus();
    if (!IsBaseName(base)) return absl::DataLossError(absl::StrCat(Quoted(base), " names no base of a model"));
    const std::string path = absl::StrCat(base, "/", kBaseDocument);
    MOTLEY_ASSIGN_OR_RETURN(const std::string document, ReadWhole(name_, path, [&](std::string_view bytes) {
                              return FilesOfBase(std::string(bytes), base).status();
                            }));
    MOTLEY_ASSIGN_OR_RETURN(const auto files, FilesOfBase(document, base));
    for (const auto& [file, digest] : files) {
      std::string text;
      if (digest != Sha256Hex("")) {  // what is empty has no block
        MOTLEY_ASSIGN_OR_RETURN(text, ReadWhole(name_, file, [&digest = digest, &file = file](std::string_view bytes) {
                                  if (Sha256Hex(bytes) == digest) return absl::OkStatus();
                                  return absl::DataLossError(absl::StrCat(file, " came altered: its digest does not match"));
                                }));
      }
      MOTLEY_RETURN_IF_ERROR(Write(file, text));
    }
    return Write(path, document);
  }

  absl::Status Write(const std::string& file, const std::string& text) const {
    const std::string path = absl::StrCat(into_, "/", file);
    MOTLEY_RETURN_IF_ERROR(MakeFolders(fs::path(path).parent_path().string()));
    return WriteFileDurably(path, text);
  }

  absl::StatusOr<std::string> ReadWhole(const std::string& checkpoint, const std::string& file,
                                        const std::function<absl::Status(std::string_view)>& verify,
                                        v1::CarryBegun* begun = nullptr) {
    std::string text;
    v1::CarryBegun ignored;
    MOTLEY_RETURN_IF_ERROR(carrier_.Read(
        {job_.value(), checkpoint, file, kMostSmallBytes}, {0},
        [&](int64_t, std::string_view bytes) {
          text = bytes;
          return verify(bytes);
        },
        begun != nullptr ? begun : &ignored));
    return text;
  }

  FileCarrier& carrier_;
  const JobId job_;
  const JobUid uid_;
  const std::string into_;
  const std::function<void(const CarriedBytes&)>& progress_;
  std::string name_, text_, folder_;
  CheckpointManifest manifest_;
  CarriedBytes bytes_;
  absl::Time said_ = absl::InfinitePast();
};

}  // namespace

absl::StatusOr<FoundCheckpoint> CarryCheckpoint(FileCarrier& carrier, const JobId& job, const JobUid& uid,
                                                const std::string& into, CarriedBlocks which,
                                                const std::function<void(const CarriedBytes&)>& progress) {
  for (int times = 1;; ++times) {
    Carried carried(carrier, job, uid, into, progress);
    MOTLEY_RETURN_IF_ERROR(carried.Begin());
    const absl::Status brought = carried.Bring(which);
    if (brought.ok()) return carried.Found();
    if (!absl::IsNotFound(brought) || times == kMostBeginnings) return brought;
  }
}

}  // namespace motley::client
