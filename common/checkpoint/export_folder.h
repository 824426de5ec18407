// The folder that an export writes. One export at a time has it, and what is there is never replaced.
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/files.h"

namespace motley {

class ExportFolder {
 public:
  // Made if missing; what an export left there that was killed is removed. ALREADY_EXISTS: it holds a model, another export
  // writes into it, or something else is there or on the way to it.
  static absl::StatusOr<ExportFolder> Claim(const std::string& path);
  ExportFolder(ExportFolder&&) noexcept = default;
  ExportFolder& operator=(ExportFolder&&) = delete;
  // Removes what was written and got no name.
  ~ExportFolder();

  const std::string& path() const { return path_; }
  // Where the file `name` is written until all are whole: a path that no other export writes.
  std::string Partial(const std::string& name);
  // Gives it its name. ALREADY_EXISTS: it is taken, by an export on a machine where this one's claim is not seen.
  absl::Status Publish(const std::string& name);
  // The same over what an export left that was killed: of a file that is no model by itself.
  absl::Status PublishPart(const std::string& name);

 private:
  ExportFolder(std::string path, FileDescriptor lock);
  std::string path_, suffix_;
  FileDescriptor lock_;
  std::set<std::string> partials_;  // names
};

// ALREADY_EXISTS where the folder holds a model or a card, or is no folder: asked before long work, too.
absl::Status CheckNoModel(const std::string& folder);

}  // namespace motley
