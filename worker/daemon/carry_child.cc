#include "worker/daemon/carry_child.h"

#include <sys/resource.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clean_text.h"
#include "common/base/landlock.h"
#include "common/base/status_macros.h"
#include "proto/motley/v1/files.pb.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/rank_files.h"
#include "worker/daemon/spawn.h"
#include "worker/files/file_blocks.h"

namespace motley::worker {
namespace {

constexpr int kNiceOfCarry = 10;  // ranks come first

bool SendCarried(const v1::CarryMessage& message) {
  return WriteAll(kChildSocket, EncodeFrame(message.SerializeAsString())).ok();
}

// What is read, as often as somebody reads. OK: nobody does any more.
absl::Status GiveCarried(const FileBlocks& file) {
  FrameDecoder decoder;
  while (true) {
    const absl::StatusOr<std::string> frame = ReadFrame(kChildSocket, decoder);
    v1::CarryMessage asked;
    if (!frame.ok()) return absl::OkStatus();
    if (!asked.ParseFromString(*frame) || !asked.has_read()) return absl::InvalidArgumentError("only reading is known here");
    const std::vector<int64_t> blocks(asked.read().blocks().begin(), asked.read().blocks().end());
    const auto give = [](int64_t block, std::string bytes) {
      v1::CarryMessage message;
      message.mutable_part()->set_block(block);
      message.mutable_part()->set_bytes(std::move(bytes));
      return SendCarried(message);
    };
    MOTLEY_RETURN_IF_ERROR(GiveBlocks(file, blocks, give));
    v1::CarryMessage answered;
    answered.set_answered(true);
    (void)SendCarried(answered);
  }
}

absl::Status OpenAndGive(const std::string& local, const LocalCheckpoint& checkpoint, const std::string& file) {
  MOTLEY_ASSIGN_OR_RETURN(const FileBlocks opened, OpenFileBlocks(local, checkpoint, file));
  return GiveCarried(opened);
}

}  // namespace

int CarryChildMain(int argc, char** argv) {
  if (argc < 7) return 65;
  (void)setpriority(PRIO_PROCESS, 0, kNiceOfCarry);
  const absl::StatusOr<std::vector<FileDescriptor>> held = RestrictFiles(GrantsOfRank({{argv[2]}, {}}));
  const absl::Status given = OpenAndGive(argv[2], {JobId(argv[3]), JobUid(argv[4]), argv[5]}, argv[6]);
  if (given.ok()) return 0;
  v1::CarryMessage end;
  end.mutable_end()->set_code(static_cast<int>(given.code()));
  end.mutable_end()->set_error(CleanLine(std::string(given.message())));
  (void)SendCarried(end);
  return 0;
}

}  // namespace motley::worker
