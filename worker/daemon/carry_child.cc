#include "worker/daemon/carry_child.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "common/base/beneath.h"
#include "common/base/clean_text.h"
#include "common/base/fault.h"
#include "common/base/landlock.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/block_parts.h"
#include "common/inputs/input_list.h"
#include "proto/motley/v1/files.pb.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/rank_files.h"
#include "worker/daemon/spawn.h"
#include "worker/files/bring_input.h"
#include "worker/files/file_blocks.h"
#include "worker/files/input_folder.h"

namespace motley::worker {
namespace {

constexpr int kNiceOfCarry = 10;  // ranks come first
constexpr mode_t kPrivateFiles = 0077;
// That are asked for before the first of them is here: nothing waits for the way, and the coordinator holds no more than these.
constexpr size_t kBlocksAhead = 2;

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

// By reading: the other end has it.
class InputTaker {
 public:
  absl::Status Read(const std::string& file, const std::vector<int64_t>& blocks, const InputSource::Take& take) {
    for (size_t asked = 0, done = 0; done < blocks.size(); ++done) {
      for (; asked < std::min(blocks.size(), done + kBlocksAhead); ++asked) MOTLEY_RETURN_IF_ERROR(Ask(file, blocks[asked]));
      MOTLEY_RETURN_IF_ERROR(Await(file, blocks[done], take));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Ask(const std::string& file, int64_t block) {
    v1::CarryMessage message;
    message.mutable_read()->set_file(file);
    message.mutable_read()->add_blocks(block);
    return SendCarried(message) ? absl::OkStatus() : absl::CancelledError("who sends it is gone");
  }

  absl::Status Await(const std::string& file, int64_t block, const InputSource::Take& take) {
    BlockParts parts({block}, file.empty() ? kMostInputListBytes : kCheckpointBlockBytes, take);
    v1::CarryMessage message;
    while (true) {
      const absl::StatusOr<std::string> frame = ReadFrame(kChildSocket, decoder_);
      if (!frame.ok()) return absl::CancelledError("who sends it is gone");
      if (!message.ParseFromString(*frame)) return absl::DataLossError("a message that cannot be read");
      if (message.has_answered()) return parts.Finish();
      if (!message.has_part()) return absl::DataLossError("something else than what was read");
      MOTLEY_RETURN_IF_ERROR(parts.Add(message.part().block(), message.part().bytes()));
    }
  }

  FrameDecoder decoder_;
};

absl::Status TakeCarriedInput(const std::string& local, const std::string& input, const std::set<std::string>& kept,
                              const std::string& path, const FileRoots& roots) {
  InputTaker taker;
  ProgressPacer pacer;
  const InputSource source = {
      .read = [&](const std::string& file, const std::vector<int64_t>& blocks,
                  const InputSource::Take& take) { return taker.Read(file, blocks, take); },
      .progress = [](int64_t, int64_t) {},
      .stopped =
          [&] {
            v1::CarryMessage busy;
            busy.set_busy(true);
            return pacer.Due() && !SendCarried(busy);
          },
      .own = OpenerOfOwn(path, roots),
  };
  const absl::Status brought = BringInput(local, input, source, kept);
  // What this disk says is not to be taken for a node that is gone.
  if (FaultOf(brought) != Fault::kStorage) return brought;
  return absl::FailedPreconditionError(brought.message());
}

}  // namespace

int CarryChildMain(int argc, char** argv) {
  if (argc < 10) return 65;
  umask(kPrivateFiles);
  (void)setpriority(PRIO_PROCESS, 0, kNiceOfCarry);
  const std::string local = argv[2], input = argv[7];
  const bool takes = !input.empty();
  if (takes && !MakeFolders(InputsFolder(local)).ok()) return 0;  // it is said by who is asked what it holds
  const FileRoots roots(std::vector<std::string>(argv + 10, argv + argc));
  RankRoots grants{{local}, {}};
  if (takes) {
    grants.read.insert(grants.read.end(), roots.paths().begin(), roots.paths().end());
    grants.write.push_back(InputsFolder(local));
  }
  const absl::StatusOr<std::vector<FileDescriptor>> held = RestrictFiles(GrantsOfRank(grants));
  const absl::Status given = takes
                                 ? TakeCarriedInput(local, input, absl::StrSplit(argv[8], ',', absl::SkipEmpty()), argv[9], roots)
                                 : OpenAndGive(local, {JobId(argv[3]), JobUid(argv[4]), argv[5]}, argv[6]);
  if (given.ok() && !takes) return 0;
  v1::CarryMessage end;
  end.mutable_end()->set_code(static_cast<int>(given.code()));
  end.mutable_end()->set_error(CleanLine(std::string(given.message())));
  (void)SendCarried(end);
  return 0;
}

}  // namespace motley::worker
