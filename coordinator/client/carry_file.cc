#include "coordinator/client/carry_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/block_parts.h"

namespace motley::client {
namespace {

constexpr absl::Duration kTryPause = absl::Seconds(1);
// Of one message: a request of the coordinator's has room for many more.
constexpr size_t kMostBlocksOfRead = 4096;

using CarryStream = grpc::ClientReaderWriter<v1::CarryMessage, v1::CarryMessage>;

// Until the read is answered. `broken`: the stream is over, and its status says why.
absl::Status TakeAnswer(CarryStream& stream, BlockParts& parts, bool* broken) {
  v1::CarryMessage message;
  while (stream.Read(&message)) {
    if (message.has_answered()) return parts.Finish();
    if (!message.has_part()) continue;  // of a newer coordinator
    if (const absl::Status added = parts.Add(message.part().block(), message.part().bytes()); !added.ok()) return added;
  }
  *broken = true;
  return absl::OkStatus();
}

bool MayComeBack(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsCancelled(status);
}

}  // namespace

FileCarrier::Attempt FileCarrier::ReadOnce(const CarriedFile& file, const std::set<std::string>& not_from,
                                           std::vector<int64_t>& blocks,
                                           const std::function<absl::Status(int64_t, std::string_view)>& take,
                                           v1::CarryBegun* begun) {
  grpc::ClientContext call;
  const std::unique_ptr<CarryStream> stream = connection_.stub().Carry(&call);
  v1::CarryMessage message;
  message.mutable_begin()->set_job_id(file.job);
  message.mutable_begin()->set_checkpoint(file.checkpoint);
  message.mutable_begin()->set_file(file.file);
  for (const std::string& node : not_from) message.mutable_begin()->add_not_from(node);
  begun->Clear();
  const bool answered = stream->Write(message) && stream->Read(&message);
  if (!answered || !message.has_begun()) {
    if (answered) call.TryCancel();
    return {FromGrpc(stream->Finish())};
  }
  *begun = message.begun();
  absl::Status taken;
  const auto noted = [&](int64_t block, std::string_view bytes) {
    taken = take(block, bytes);
    if (taken.ok()) std::erase(blocks, block);
    return taken;
  };
  while (!blocks.empty()) {
    const std::vector<int64_t> asked(blocks.begin(),
                                     blocks.begin() + static_cast<std::ptrdiff_t>(std::min(blocks.size(), kMostBlocksOfRead)));
    v1::CarryMessage read;
    read.mutable_read()->mutable_blocks()->Add(asked.begin(), asked.end());
    BlockParts parts(asked, file.block_bytes, noted);
    bool broken = !stream->Write(read);
    const absl::Status came = broken ? absl::OkStatus() : TakeAnswer(*stream, parts, &broken);
    if (broken) {
      const absl::Status why = FromGrpc(stream->Finish());
      return {why.ok() ? absl::UnavailableError("it ended before all was here") : why};
    }
    if (!came.ok()) {
      call.TryCancel();
      (void)stream->Finish();
      return {came, !taken.ok() && !absl::IsDataLoss(taken)};
    }
  }
  v1::CarryMessage end;
  end.mutable_end();
  (void)stream->Write(end);
  (void)stream->Finish();
  return {absl::OkStatus()};
}

absl::Status FileCarrier::Read(const CarriedFile& file, std::vector<int64_t> blocks,
                               const std::function<absl::Status(int64_t, std::string_view)>& take, v1::CarryBegun* begun) {
  std::set<std::string> asked;
  std::vector<std::string> said;
  bool damaged = false;
  absl::Time moved = absl::Now();
  while (true) {
    const size_t before = blocks.size();
    const Attempt attempt = ReadOnce(file, asked, blocks, take, begun);
    if (attempt.status.ok() || attempt.last_word) return attempt.status;
    if (blocks.size() < before) moved = absl::Now();
    const std::string why(attempt.status.message());
    if (!begun->node().empty()) {
      if (!asked.insert(begun->node()).second) return attempt.status;  // it was not to be asked
      said.push_back(absl::StrCat("node ", begun->node(), ": ", why));
      damaged |= absl::IsDataLoss(attempt.status);
      continue;
    }
    if (MayComeBack(attempt.status) && absl::Now() - moved < options_.patience) {
      options_.say(absl::StrCat(why, "; trying again"));
      options_.pause(kTryPause);
      asked.clear();  // a node that was gone may be back, too
      continue;
    }
    if (said.empty() || !absl::IsNotFound(attempt.status)) return attempt.status;
    return absl::Status(damaged ? absl::StatusCode::kDataLoss : absl::StatusCode::kNotFound,
                        absl::StrCat(why, "; ", absl::StrJoin(said, "; ")));
  }
}

}  // namespace motley::client
