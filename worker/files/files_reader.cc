#include "worker/files/files_reader.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clean_text.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/block_parts.h"
#include "common/checkpoint/checkpoint.h"
#include "common/rpc/channel.h"
#include "common/rpc/tls_credentials.h"
#include "common/wire/files.h"
#include "proto/motley/v1/files.grpc.pb.h"
#include "worker/files/checkpoint_file.h"

namespace motley::worker {
namespace {

// How often a wait looks at `stopped`.
constexpr absl::Duration kTick = absl::Milliseconds(100);

// One call, by one thread.
class Call {
 public:
  Call(const std::shared_ptr<grpc::Channel>& channel, const v1::ReadRequest& request, const FilesReading& reading)
      : stub_(v1::Files::NewStub(channel)), reading_(reading), stream_(stub_->PrepareAsyncRead(&context_, request, &queue_)) {
    stream_->StartCall(this);
  }
  // Without the end of the call nothing of it may go.
  ~Call() {
    if (!ended_) (void)End();
    queue_.Shutdown();
    void* tag = nullptr;
    for (bool ok = false; queue_.Next(&tag, &ok);) {
    }
  }

  // That it is on its way; false: it is not, as its end says.
  absl::StatusOr<bool> Started() {
    const absl::StatusOr<bool> started = Wait();
    behind_ = absl::ZeroDuration();  // the way to it is no part of its rate
    return started;
  }
  // False: there is no other part.
  absl::StatusOr<bool> Read() {
    stream_->Read(&part_, this);
    const absl::StatusOr<bool> came = Wait();
    if (came.ok() && *came && reading_.least_bytes_per_second > 0) {
      const double due = static_cast<double>(part_.bytes().size()) / static_cast<double>(reading_.least_bytes_per_second);
      behind_ = std::max(absl::ZeroDuration(), behind_ - absl::Seconds(due));
    }
    return came;
  }
  const v1::ReadPart& part() const { return part_; }
  // Why it is over; of one that is not it is made so.
  grpc::Status End() {
    if (!over_) context_.TryCancel();
    if (waiting_) (void)WaitForEver();
    grpc::Status status;
    stream_->Finish(&status, this);
    (void)WaitForEver();
    ended_ = true;
    return status;
  }

 private:
  // For the operation that was begun. UNAVAILABLE after a silence, or where little comes; CANCELLED.
  absl::StatusOr<bool> Wait() {
    waiting_ = true;
    const absl::Duration since = clock_.Now(), patience = reading_.silence - behind_;
    while (true) {
      if (reading_.stopped()) return absl::CancelledError("stopped");
      const absl::Duration left = patience - (clock_.Now() - since);
      if (left <= absl::ZeroDuration()) return TooSlow(patience);
      void* tag = nullptr;
      bool ok = false;
      const auto until = absl::ToChronoTime(absl::Now() + std::min(left, kTick));
      if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) continue;
      if (reading_.least_bytes_per_second > 0) behind_ += clock_.Now() - since;
      waiting_ = false;
      over_ = !ok;
      return ok;
    }
  }
  absl::Status TooSlow(absl::Duration patience) const {
    if (patience == reading_.silence)
      return absl::UnavailableError(absl::StrCat("sent nothing for ", absl::FormatDuration(reading_.silence)));
    return absl::UnavailableError(absl::StrCat("sends less than ", reading_.least_bytes_per_second >> 10, " KiB a second"));
  }
  bool WaitForEver() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    waiting_ = false;
    return ok;
  }

  const SystemClock clock_;
  const std::unique_ptr<v1::Files::Stub> stub_;
  const FilesReading& reading_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  v1::ReadPart part_;  // written to as long as the call goes on, read or not
  const std::unique_ptr<grpc::ClientAsyncReader<v1::ReadPart>> stream_;
  bool waiting_ = false, over_ = false, ended_ = false;
  absl::Duration behind_;  // the least rate: that it was waited for, and not what the reader did between
};

absl::Status OfNode(const CheckpointHolder& holder, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("node ", holder.node.value(), ": ", std::string(status.message())));
}

// Of the call's end, by what the reader tells apart.
absl::Status FromGrpc(const grpc::Status& status, bool other_certificate) {
  if (status.ok()) return absl::OkStatus();
  if (other_certificate)
    return absl::UnavailableError("who answers there shows another certificate than this node's files process");
  const std::string said = Echo(status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::DATA_LOSS:
      return absl::Status(static_cast<absl::StatusCode>(status.error_code()), said);
    default:
      return absl::UnavailableError(absl::StrCat("does not answer: ", said));
  }
}

}  // namespace

absl::Status ReadBlocks(const CheckpointHolder& holder, const FilesReading& reading, const std::string& file,
                        const std::vector<int64_t>& blocks, const std::function<absl::Status(int64_t, std::string_view)>& take) {
  // gRPC may judge when nobody waits any more.
  const auto other = std::make_shared<std::atomic<bool>>(false);
  const auto judge = [other, expected = holder.certificate](const std::vector<Certificate>& shown) {
    if (shown.front().Hash() == expected) return absl::OkStatus();
    *other = true;
    return absl::UnauthenticatedError("another certificate");
  };
  v1::ReadRequest request;
  *request.mutable_ticket() = wire::ToProto(holder.ticket);
  request.set_job_id(reading.job.value());
  request.set_checkpoint(reading.checkpoint);
  request.set_file(file);
  request.set_input(reading.input);
  request.mutable_blocks()->Add(blocks.begin(), blocks.end());
  Call call(OpenChannel(holder.address, DirectArguments(),
                        TlsUnsignedCredentials(reading.identity.key, reading.identity.certificate, judge)),
            request, reading);

  absl::Status taken;
  const bool one_block = reading.input.empty() ? IsOneBlock(file) : file.empty();
  BlockParts whole(blocks, one_block ? kMostManifestBytes : kCheckpointBlockBytes,
                   [&](int64_t block, std::string_view bytes) { return taken = take(block, bytes); });
  absl::StatusOr<bool> goes_on = call.Started();
  while (goes_on.ok() && *goes_on) {
    goes_on = call.Read();
    if (!goes_on.ok() || !*goes_on) break;
    if (reading.came) reading.came(static_cast<int64_t>(call.part().bytes().size()));
    if (const absl::Status added = whole.Add(call.part().block(), call.part().bytes()); !added.ok())
      return taken.ok() ? OfNode(holder, added) : taken;
  }
  if (!goes_on.ok()) return OfNode(holder, goes_on.status());
  if (const absl::Status end = FromGrpc(call.End(), *other); !end.ok()) return OfNode(holder, end);
  const absl::Status finished = whole.Finish();
  return finished.ok() || !taken.ok() ? finished : OfNode(holder, finished);
}

}  // namespace motley::worker
