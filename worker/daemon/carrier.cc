#include "worker/daemon/carrier.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "proto/motley/v1/worker.grpc.pb.h"
#include "worker/daemon/carry_child.h"
#include "worker/daemon/frame.h"
#include "worker/daemon/spawn.h"

namespace motley::worker {
namespace {

// A child that takes nothing for so long waits for a disk that hangs.
constexpr time_t kLongestWriteSeconds = 600;

using Stream = grpc::ClientReaderWriter<v1::CarryMessage, v1::CarryMessage>;

void SayEnd(Stream& stream, const absl::Status& why) {
  v1::CarryMessage message;
  message.mutable_end()->set_code(static_cast<int>(why.code()));
  message.mutable_end()->set_error(CleanLine(std::string(why.message())));
  (void)stream.Write(message);
}

// What the child says goes to the coordinator, until one of both is gone or the child has said its end.
void Forward(int child, Stream& stream) {
  FrameDecoder decoder;
  while (true) {
    const absl::StatusOr<std::string> frame = ReadFrame(child, decoder);
    v1::CarryMessage message;
    if (!frame.ok() || !message.ParseFromString(*frame)) {
      return SayEnd(stream, absl::UnavailableError("the process that gives files of jobs here is gone"));
    }
    if (!stream.Write(message) || message.has_end()) return;
  }
}

// Both ways, each on a thread: the child's socket and the stream are as slow as the slower one.
void Exchange(const SpawnedProcess& child, Stream& stream) {
  const int fd = child.socket.get();
  (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const timeval longest = {kLongestWriteSeconds, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof(longest));
  std::thread reader([&] {
    v1::CarryMessage message;
    while (stream.Read(&message) && WriteAll(fd, EncodeFrame(message.SerializeAsString())).ok()) {
    }
    shutdown(fd, SHUT_RDWR);
  });
  Forward(fd, stream);
  stream.WritesDone();
  reader.join();
}

// One that its disk holds is not waited for: it ends with this process.
void Reap(pid_t child) {
  kill(child, SIGKILL);
  for (int tries = 0; tries < 100; ++tries) {
    if (waitpid(child, nullptr, WNOHANG) != 0) return;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

}  // namespace

Carrier::~Carrier() {
  std::list<Running> running;
  {
    absl::MutexLock lock(&mutex_);
    running.swap(running_);
  }
  for (Running& carry : running) {
    carry.context.TryCancel();
    if (const pid_t child = carry.child; child > 0) kill(child, SIGKILL);
  }
  for (Running& carry : running) carry.thread.join();
}

void Carrier::SetOpener(ChannelOpener opener) {
  absl::MutexLock lock(&mutex_);
  opener_ = std::move(opener);
}

void Carrier::Carry(CarryCommand command) {
  absl::MutexLock lock(&mutex_);
  running_.remove_if([](Running& carry) {
    if (!carry.done) return false;
    carry.thread.join();
    return true;
  });
  if (!opener_) return;
  Running& carry = running_.emplace_back();
  carry.thread = std::thread([this, command = std::move(command), opener = opener_, &carry] {
    Run(command, opener, carry);
    carry.done = true;
  });
}

void Carrier::Run(const CarryCommand& command, const ChannelOpener& opener, Running& carry) const {
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = opener();
  // Whoever asked is told by the coordinator that this node did not come.
  if (!channel.ok()) return LogWarning(absl::StrCat("carries nothing: ", std::string(channel.status().message())));
  const std::unique_ptr<v1::WorkerService::Stub> stub = v1::WorkerService::NewStub(*channel);
  const std::unique_ptr<Stream> stream = stub->Carry(&carry.context);
  v1::CarryMessage first;
  first.set_carry_id(command.carry_id);
  if (stream->Write(first)) {
    std::vector<std::string> arguments = {
        kCarryChildWord,    config_.local, command.job.value(), command.job_uid.value(),
        command.checkpoint, command.file,  command.input,       absl::StrJoin(command.kept_inputs, ","),
        command.path};
    arguments.insert(arguments.end(), config_.file_roots.begin(), config_.file_roots.end());
    const absl::StatusOr<SpawnedProcess> child = Spawn(config_.program, arguments, {}, {});
    if (child.ok()) {
      carry.child = child->pid;
      Exchange(*child, *stream);
      carry.child = -1;
      Reap(child->pid);
    } else {
      SayEnd(*stream, absl::UnavailableError(child.status().message()));
      stream->WritesDone();
    }
  }
  v1::CarryMessage rest;
  while (stream->Read(&rest)) {
  }
  (void)stream->Finish();
}

}  // namespace motley::worker
