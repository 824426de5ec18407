#include "coordinator/client/send_input.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/resume_folder.h"

namespace motley::client {
namespace {

using SendStream = grpc::ClientReaderWriter<v1::CarryMessage, v1::CarryMessage>;

constexpr absl::Duration kRetryPause = absl::Seconds(1), kSayPause = absl::Seconds(1);
constexpr size_t kPartBytes = size_t{128} << 10;

// Answers what the node reads.
class InputGiver {
 public:
  InputGiver(const InputList& list, const std::string& path, const Sending& sending)
      : list_(list), text_(InputListToJson(list)), sending_(sending) {
    std::error_code error;
    place_ = std::filesystem::canonical(path, error).string();
    bytes_.all = list.bytes();
    for (size_t f = 0; f < list.files.size(); ++f) files_[list.files[f].name] = f;
  }

  void GoesTo(const std::string& node) { bytes_.node = node; }
  absl::Time moved() const { return moved_; }

  // False: the stream is over.
  absl::StatusOr<bool> Answer(SendStream& stream, const v1::CarryRead& read) {
    for (const int64_t block : read.blocks()) {
      MOTLEY_ASSIGN_OR_RETURN(const std::string bytes, BlockOf(read.file(), block));
      for (size_t at = 0; at < bytes.size(); at += kPartBytes) {
        v1::CarryMessage message;
        message.mutable_part()->set_block(block);
        message.mutable_part()->set_bytes(bytes.substr(at, kPartBytes));
        if (!stream.Write(message)) return false;
      }
      Note(static_cast<int64_t>(read.file().empty() ? 0 : bytes.size()));
    }
    v1::CarryMessage answered;
    answered.set_answered(true);
    return stream.Write(answered);
  }

 private:
  absl::StatusOr<std::string> BlockOf(const std::string& name, int64_t block) {
    if (name.empty()) return text_;
    const auto found = files_.find(name);
    const CheckpointFile* const file = found == files_.end() ? nullptr : &list_.files[found->second];
    if (file == nullptr || block < 0 || block >= static_cast<int64_t>(file->blocks.size())) {
      return absl::InternalError(
          absl::StrCat("the node asks for block ", block, " of ", CleanLine(name), ", which is not of it"));
    }
    // The first part of its name is what people called it, which may be a link.
    const std::string path = absl::StrCat(place_, name.substr(std::min(name.size(), list_.name.size())));
    if (open_ != name) {
      // Weights may be links (ChoiceOfWeights); what they hold is compared with the list.
      MOTLEY_ASSIGN_OR_RETURN(opened_, OpenForRead(path));
      open_ = name;
    }
    std::string bytes(static_cast<size_t>(BytesOfBlock(*file, block)), '\0');
    const absl::Status read =
        ReadAt(opened_, path, block * kCheckpointBlockBytes, bytes.data(), static_cast<int64_t>(bytes.size()));
    if ((read.ok() && Sha256Hex(bytes) == file->blocks[static_cast<size_t>(block)])) return bytes;
    if (!read.ok() && !absl::IsDataLoss(read)) return read;
    return absl::AbortedError(absl::StrCat(path, " changed while it was sent; submit again when nobody writes there"));
  }

  void Note(int64_t bytes) {
    if (bytes == 0) return;  // the list, which is asked for with each try
    bytes_.sent += bytes;
    moved_ = absl::Now();
    if (moved_ - said_ < kSayPause) return;
    said_ = moved_;
    sending_.progress(bytes_);
  }

  const InputList& list_;
  const std::string text_;
  std::string place_;  // what the path leads to; empty: nothing any more
  const Sending& sending_;
  std::map<std::string, size_t> files_;
  std::string open_;
  FileDescriptor opened_;
  SentBytes bytes_;
  absl::Time moved_ = absl::Now(), said_ = absl::InfinitePast();
};

struct SendAttempt {
  absl::Status status;
  std::string node;        // that took it; empty: none was found
  bool last_word = false;  // of this machine
};

SendAttempt SendOnce(Connection& connection, const std::string& job, const std::string& input, const Sending& sending,
                     const std::set<std::string>& not_to, InputGiver& giver) {
  grpc::ClientContext call;
  const std::unique_ptr<SendStream> stream = connection.stub().Carry(&call);
  v1::CarryMessage message;
  message.mutable_begin()->set_job_id(job);
  message.mutable_begin()->set_input(input);
  message.mutable_begin()->set_path(sending.elsewhere);
  for (const std::string& node : sending.elsewhere_nodes) message.mutable_begin()->add_on_nodes(node);
  for (const std::string& node : not_to) message.mutable_begin()->add_not_from(node);
  const bool answered = stream->Write(message) && stream->Read(&message);
  if (!answered || !message.has_begun()) {
    if (answered) call.TryCancel();
    return {FromGrpc(stream->Finish()), "", false};
  }
  SendAttempt attempt{absl::OkStatus(), message.begun().node(), false};
  giver.GoesTo(attempt.node);
  while (stream->Read(&message)) {
    if (!message.has_read()) continue;
    const absl::StatusOr<bool> goes_on = giver.Answer(*stream, message.read());
    if (!goes_on.ok()) {
      call.TryCancel();
      (void)stream->Finish();
      return {goes_on.status(), attempt.node, true};
    }
    if (!*goes_on) break;
  }
  attempt.status = FromGrpc(stream->Finish());
  return attempt;
}

bool PassesBy(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) || absl::IsResourceExhausted(status);
}

}  // namespace

absl::Status SendInput(Connection& connection, const std::string& job, const InputList& list, const std::string& path,
                       const Sending& sending) {
  const std::string id = InputOf(list).id;
  InputGiver giver(list, path, sending);
  std::set<std::string> not_to;
  std::vector<std::string> said;
  while (true) {
    const SendAttempt attempt = SendOnce(connection, job, id, sending, not_to, giver);
    if (attempt.status.ok() || (attempt.node.empty() && absl::IsAlreadyExists(attempt.status))) return absl::OkStatus();
    if (attempt.last_word) return attempt.status;
    const std::string why(attempt.status.message());
    const bool again = PassesBy(attempt.status) && absl::Now() - giver.moved() < sending.patience;
    // A node that is gone may come back; one that cannot take it is not asked again.
    if (!attempt.node.empty() && !absl::IsUnavailable(attempt.status) && !absl::IsCancelled(attempt.status)) {
      if (!not_to.insert(attempt.node).second) return attempt.status;  // it was not to be asked
      said.push_back(absl::StrCat("node ", attempt.node, ": ", why));
      continue;
    }
    if (again) {
      sending.say(absl::StrCat(why, "; trying again"));
      sending.pause(kRetryPause);
      continue;
    }
    if (said.empty()) return attempt.status;
    return absl::Status(attempt.status.code(), absl::StrCat(why, "; ", absl::StrJoin(said, "; ")));
  }
}

}  // namespace motley::client
