// A node that has files of the saved checkpoint on its disk and gives them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/session/files_ticket.h"
#include "tests/worker/files/files_giver.h"
#include "tests/worker/files/saved_checkpoint.h"
#include "worker/files/files_server.h"

namespace motley::worker {

// The checkpoint is made once: it is not changed.
inline const SavedCheckpoint& Saved() {
  static const auto& saved = *new SavedCheckpoint;
  return saved;
}

class GivingNode {
 public:
  explicit GivingNode(const std::string& name) : name_(name) { server_->SetSecret("secret of " + name); }
  const std::string& local() const { return local_.path(); }
  FilesTicket Ticket(const FilesIdentity& reader, const JobUid& of) const {
    return MakeFilesTicket("secret of " + name_, reader.digest, of, absl::ToUnixMillis(clock_.WallNow()) + 1000);
  }
  CheckpointHolder Holder(const FilesIdentity& reader, std::vector<std::string> files, bool manifest = true) const {
    return {NodeName(name_), absl::StrCat("127.0.0.1:", server_->port()), identity_.digest, Ticket(reader, Saved().uid), manifest,
            std::move(files)};
  }

 private:
  const std::string name_;
  const TempFolder local_;
  const FakeClock clock_;
  const FilesIdentity identity_ = NewFilesIdentity();
  const std::unique_ptr<FilesServer> server_ =
      FilesServer::Start(local_.path(), "127.0.0.1", identity_, clock_, absl::Milliseconds(40)).value();
};

}  // namespace motley::worker
