#include "worker/files/bring_input.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/resume_folder.h"
#include "worker/files/input_folder.h"

namespace motley::worker {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kNotBegunPause = absl::Milliseconds(100);
constexpr int kMostTriesToBegin = 6000;  // ten minutes: whoever was to call it off is gone

// Where a file lies while its input comes, and what it is called there.
struct Place {
  std::string folder;
  CheckpointFile file;
};
Place PlaceOf(const std::string& part, const CheckpointFile& file) {
  const fs::path path = fs::path(part) / file.name;
  Place place{path.parent_path().string(), file};
  place.file.name = path.filename().string();
  return place;
}

absl::StatusOr<InputList> FindList(const std::string& local, const std::string& id, const InputSource& source) {
  const std::string path = InputListPath(local, id);
  if (const auto own = ReadSmallFile(path, kMostInputListBytes); own.ok()) {
    absl::StatusOr<InputList> list = InputListFromJson(*own, id);
    if (list.ok()) return list;
  }
  absl::StatusOr<InputList> list;
  std::string text;
  MOTLEY_RETURN_IF_ERROR(source.read("", {0}, [&](int64_t, std::string_view bytes) {
    text = bytes;
    list = InputListFromJson(text, id);
    return list.status();
  }));
  MOTLEY_RETURN_IF_ERROR(RemoveTree(path));
  MOTLEY_RETURN_IF_ERROR(WriteFileDurably(path, text));
  return list;
}

// Of one input, while it comes.
class ComingInput {
 public:
  ComingInput(const std::string& local, const std::string& id, const InputSource& source, InputList list)
      : part_(PartOfInput(local, id)), source_(source), list_(std::move(list)) {}

  // What lacks, by file. Each is made.
  absl::Status Look() {
    for (const CheckpointFile& file : list_.files) {
      const Place place = PlaceOf(part_, file);
      MOTLEY_RETURN_IF_ERROR(MakeFolders(place.folder));
      MOTLEY_ASSIGN_OR_RETURN(ResumeFile made, ResumeFile::GoOn(place.folder, place.file));
      MOTLEY_ASSIGN_OR_RETURN(std::vector<int64_t> lacking, made.Lacking(AllBlocks(place.file), source_.stopped));
      for (const int64_t block : lacking) bytes_ += BytesOfBlock(file, block);
      lacking_.push_back(std::move(lacking));
    }
    return absl::OkStatus();
  }
  int64_t bytes() const { return bytes_; }

  absl::Status Bring() {
    source_.progress(bytes_, 0);
    int64_t here = 0;
    for (size_t f = 0; f < list_.files.size(); ++f) {
      const CheckpointFile& file = list_.files[f];
      const Place place = PlaceOf(part_, file);
      MOTLEY_ASSIGN_OR_RETURN(ResumeFile made, ResumeFile::GoOn(place.folder, place.file));
      MOTLEY_RETURN_IF_ERROR(TakeOwn(f, made, here));
      if (!lacking_[f].empty()) {
        MOTLEY_RETURN_IF_ERROR(source_.read(file.name, lacking_[f], [&](int64_t block, std::string_view bytes) {
          MOTLEY_RETURN_IF_ERROR(made.Put(block, bytes));
          source_.progress(bytes_, here += BytesOfBlock(file, block));
          return absl::OkStatus();
        }));
      }
      MOTLEY_RETURN_IF_ERROR(made.Finish());
      MOTLEY_RETURN_IF_ERROR(SyncFolder(place.folder));
    }
    return absl::OkStatus();
  }

 private:
  // What this node has elsewhere, and as the list says.
  absl::Status TakeOwn(size_t f, ResumeFile& made, int64_t& here) {
    if (!source_.own || lacking_[f].empty()) return absl::OkStatus();
    const CheckpointFile& file = list_.files[f];
    const absl::StatusOr<FileDescriptor> opened = source_.own(file.name);
    if (!opened.ok()) return absl::OkStatus();
    std::vector<int64_t> left;
    for (const int64_t block : lacking_[f]) {
      if (source_.stopped()) return absl::CancelledError("stopped");
      std::string bytes(static_cast<size_t>(BytesOfBlock(file, block)), '\0');
      const absl::Status read =
          ReadAt(*opened, file.name, block * kCheckpointBlockBytes, bytes.data(), static_cast<int64_t>(bytes.size()));
      const absl::Status put = read.ok() ? made.Put(block, bytes) : read;
      if (put.ok()) source_.progress(bytes_, here += BytesOfBlock(file, block));
      if (!put.ok() && read.ok() && !absl::IsDataLoss(put)) return put;
      if (!put.ok()) left.push_back(block);
    }
    lacking_[f] = std::move(left);
    return absl::OkStatus();
  }

  const std::string part_;
  const InputSource& source_;
  const InputList list_;
  std::vector<std::vector<int64_t>> lacking_;
  int64_t bytes_ = 0;
};

// ReadPatiently, of a holder to which it comes still: where it has not begun to it is waited for.
absl::Status ReadWhileItComes(const CheckpointHolder& holder, const FilesReading& reading, const Bringing& bringing,
                              const std::string& file, const std::vector<int64_t>& left, const InputSource::Take& take,
                              const std::function<void()>& say) {
  for (int tries = 1;; ++tries) {
    const absl::Status read = ReadPatiently(holder, reading, bringing, file, left, take, say);
    if (holder.manifest || !absl::IsNotFound(read) || tries == kMostTriesToBegin) return read;
    say();
    bringing.pause(kNotBegunPause);
  }
}

}  // namespace

absl::Status LookWhetherAltered(const std::string& local, const std::string& id, const std::function<bool()>& stopped) {
  if (WholeInputs(local, {id}).empty()) return absl::OkStatus();
  MOTLEY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(InputListPath(local, id), kMostInputListBytes));
  const absl::StatusOr<InputList> list = InputListFromJson(text, id);
  const std::string whole = absl::StrCat(InputsFolder(local), "/", id), part = PartOfInput(local, id);
  bool altered = !list.ok();
  for (size_t f = 0; !altered && f < list->files.size(); ++f) {
    const CheckpointFile& file = list->files[f];
    const absl::StatusOr<FileDescriptor> opened = OpenInputFile(local, id, file.name);
    if (FaultOf(opened.status()) == Fault::kStorage) return opened.status();
    if ((altered = !opened.ok())) break;
    MOTLEY_ASSIGN_OR_RETURN(const std::vector<int64_t> blocks, AlteredBlocks(*opened, file.name, file, AllBlocks(file), stopped));
    altered = !blocks.empty();
  }
  if (!altered) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(RemoveTree(part));
  return ::rename(whole.c_str(), part.c_str()) == 0 ? absl::OkStatus() : FileError(errno, "rename", whole);
}

absl::Status BringInput(const std::string& local, const std::string& id, const InputSource& source,
                        const std::set<std::string>& kept) {
  if (!IsInputId(id)) return absl::InvalidArgumentError(absl::StrCat("'", id, "' is no input's id"));
  if (!WholeInputs(local, {id}).empty()) return absl::OkStatus();
  const std::string inputs = InputsFolder(local), whole = absl::StrCat(inputs, "/", id), part = PartOfInput(local, id);
  MOTLEY_RETURN_IF_ERROR(MakeFolders(part));
  MOTLEY_RETURN_IF_ERROR(RemoveTree(whole));  // what a deletion left that was cut off, which a list would make whole
  MOTLEY_ASSIGN_OR_RETURN(InputList list, FindList(local, id, source));
  ComingInput coming(local, id, source, std::move(list));
  MOTLEY_RETURN_IF_ERROR(coming.Look());
  std::set<std::string> stay = kept;
  stay.insert(id);
  MOTLEY_RETURN_IF_ERROR(MakeRoomForInput(local, coming.bytes(), stay));
  MOTLEY_RETURN_IF_ERROR(coming.Bring());
  if (::rename(part.c_str(), whole.c_str()) != 0) return FileError(errno, "rename", part);
  return SyncFolder(inputs);
}

std::function<absl::StatusOr<FileDescriptor>(const std::string& file)> OpenerOfOwn(const std::string& path,
                                                                                   const FileRoots& roots) {
  if (path.empty()) return nullptr;
  // The first part of a file's name is what its input is called.
  return [path, &roots](const std::string& file) {
    const size_t slash = file.find('/');
    return roots.OpenForRead("data.path", slash == std::string::npos ? path : absl::StrCat(path, file.substr(slash)));
  };
}

absl::Status BringInputFromNodes(const CopyCommand& command, const Bringing& bringing) {
  FilesReading reading{bringing.identity, command.job, ""};
  reading.input = command.input;
  reading.stopped = bringing.stopped;
  RatePacer rate(bringing);
  reading.came = [&](int64_t bytes) { rate.Came(bytes); };
  FetchReport report{command.job, command.epoch};
  report.copy_id = command.copy_id;
  report.input = command.input;
  InputSource source;
  ProgressPacer pacer;
  source.stopped = [&] {
    if (pacer.Due()) bringing.progress(report);
    return bringing.stopped();
  };
  source.progress = [&](int64_t bytes, int64_t here) {
    report.bytes = bytes, report.bytes_here = here;
    if (here == 0 || here == bytes || pacer.Due()) bringing.progress(report);
  };
  source.read = [&](const std::string& file, const std::vector<int64_t>& blocks, const InputSource::Take& take) {
    std::vector<int64_t> left = blocks;
    std::vector<std::string> said;
    absl::Status own;
    const auto say = [&] {
      if (pacer.Due()) bringing.progress(report);
    };
    const auto noted = [&](int64_t block, std::string_view bytes) {
      own = take(block, bytes);
      if (own.ok()) std::erase(left, block);
      return own;
    };
    for (const CheckpointHolder& holder : command.source.holders) {
      own = absl::OkStatus();
      const absl::Status read = ReadWhileItComes(holder, reading, bringing, file, left, noted, say);
      if (read.ok() || absl::IsCancelled(read) || (!own.ok() && !absl::IsDataLoss(own))) return read;
      if (absl::IsDataLoss(own) && holder.manifest) {
        report.damaged_files.push_back({holder.node, file});
        bringing.progress(report);
      }
      said.push_back(std::string(read.message()));
    }
    return absl::UnavailableError(absl::StrCat("no node gives it now: ", absl::StrJoin(said, "; ")));
  };
  if (command.source.verify) MOTLEY_RETURN_IF_ERROR(LookWhetherAltered(bringing.local, command.input, source.stopped));
  return BringInput(bringing.local, command.input, source, {command.files.begin(), command.files.end()});
}

}  // namespace motley::worker
