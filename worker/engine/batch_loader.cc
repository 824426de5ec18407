#include "worker/engine/batch_loader.h"

#include <ATen/ATen.h>

#include <utility>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

constexpr absl::Duration kLookAgain = absl::Microseconds(50);  // of a copy that takes about as long

}  // namespace

absl::StatusOr<std::unique_ptr<BatchLoader>> BatchLoader::Make(const Dataset& data, const Program& program, int64_t seq_len,
                                                               DeviceBackend& backend, SamplesOfStep samples_of) {
  auto loader = std::unique_ptr<BatchLoader>(new BatchLoader(data, program, seq_len, backend, std::move(samples_of)));
  DeviceMemory* const memory = backend.memory();
  const auto bytes = BatchSize(program, seq_len) * static_cast<int64_t>(sizeof(int64_t));
  if (memory == nullptr || bytes == 0) return loader;
  MOTLEY_ASSIGN_OR_RETURN(void* const room, memory->AllocateHost(bytes));
  loader->room_ = PinnedRoom(static_cast<int64_t*>(room), [memory](int64_t* pinned) { memory->FreeHost(pinned); });
  return loader;
}

BatchLoader::~BatchLoader() {
  if (next_.valid()) next_.wait();
  AwaitCopy().IgnoreError();
}

absl::StatusOr<Batch> BatchLoader::Load(int64_t step) {
  if (room_ == nullptr) return MakeBatch(data_, Split::kTrain, program_, seq_len_, backend_.tensors(), SamplesIn(step));
  std::future<absl::Status> next = std::move(next_);
  if (next.valid()) next.wait();
  MOTLEY_RETURN_IF_ERROR(next.valid() && next_step_ == step ? next.get() : Write(step));
  MOTLEY_ASSIGN_OR_RETURN(const at::Tensor numbers, CopyToDevice());
  next_step_ = step + 1;
  next_ = std::async(std::launch::async, [this, next_step = next_step_] { return Write(next_step); });
  return ViewsOf(numbers, program_, seq_len_);
}

SamplesOf BatchLoader::SamplesIn(int64_t step) const {
  return [this, step](const Microbatch& microbatch) { return samples_of_(step, microbatch); };
}

absl::Status BatchLoader::Write(int64_t step) {
  MOTLEY_RETURN_IF_ERROR(AwaitCopy());
  return WriteBatch(data_, Split::kTrain, program_, seq_len_, SamplesIn(step), room_.get());
}

absl::StatusOr<at::Tensor> BatchLoader::CopyToDevice() {
  DeviceStream& stream = *backend_.StreamOf(Lane::kCompute);
  MOTLEY_RETURN_IF_ERROR(stream.Call([&] {
    // The stream's own memory: what it runs later may use it again without waiting.
    copy_ = at::empty({BatchSize(program_, seq_len_)}, at::TensorOptions().dtype(at::kLong).device(backend_.tensors()));
    return backend_.memory()->CopyAsync(copy_.mutable_data_ptr(), room_.get(), static_cast<int64_t>(copy_.nbytes()),
                                        stream.handle());
  }));
  MOTLEY_ASSIGN_OR_RETURN(copied_, stream.Mark());
  return copy_;
}

absl::Status BatchLoader::AwaitCopy() {
  while (copied_ != nullptr) {
    const absl::StatusOr<bool> reached = copied_->Reached();
    if (reached.ok() && !*reached) {
      absl::SleepFor(kLookAgain);
      continue;
    }
    copied_ = nullptr;
    copy_ = at::Tensor();
    return reached.status();
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
