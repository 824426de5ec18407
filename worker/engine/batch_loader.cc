#include "worker/engine/batch_loader.h"

#include <ATen/ATen.h>

#include <utility>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "worker/engine/base/memory.h"

namespace motley::engine {
namespace {

constexpr absl::Duration kLookAgain = absl::Microseconds(50);  // of a copy that takes about as long

}  // namespace

absl::StatusOr<std::unique_ptr<BatchLoader>> BatchLoader::Make(const Dataset& data, const Program& program, int64_t seq_len,
                                                               int64_t global_batch, DeviceBackend& backend,
                                                               SamplesOfStep samples_of) {
  auto loader =
      std::unique_ptr<BatchLoader>(new BatchLoader(data, program, seq_len, global_batch, backend, std::move(samples_of)));
  DeviceMemory* const memory = backend.memory();
  const auto bytes = MostNumbers(data, program, seq_len) * static_cast<int64_t>(sizeof(int64_t));
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
  const CountingAs counting(MemoryPurpose::kSaved);  // plans count tokens so
  if (room_ == nullptr) {
    MOTLEY_ASSIGN_OR_RETURN(Batch batch,
                            MakeBatch(data_, Split::kTrain, program_, seq_len_, backend_.tensors(), SamplesIn(step)));
    MOTLEY_ASSIGN_OR_RETURN(batch.trained_tokens, CountTrained(step));
    return batch;
  }
  std::future<absl::StatusOr<Written>> next = std::move(next_);
  if (next.valid()) next.wait();
  MOTLEY_ASSIGN_OR_RETURN(const Written written, next.valid() && next_step_ == step ? next.get() : Write(step));
  MOTLEY_ASSIGN_OR_RETURN(const at::Tensor numbers, CopyToDevice(written.batch.numbers));
  next_step_ = step + 1;
  next_ = std::async(std::launch::async, [this, next_step = next_step_] { return Write(next_step); });
  Batch batch = ViewsOf(numbers, written.batch, program_, seq_len_);
  batch.trained_tokens = written.trained_tokens;
  return batch;
}

SamplesOf BatchLoader::SamplesIn(int64_t step) const {
  return [this, step](const Microbatch& microbatch) { return samples_of_(step, microbatch); };
}

absl::StatusOr<BatchLoader::Written> BatchLoader::Write(int64_t step) {
  MOTLEY_RETURN_IF_ERROR(AwaitCopy());
  Written written;
  MOTLEY_ASSIGN_OR_RETURN(written.batch, WriteBatch(data_, Split::kTrain, program_, seq_len_, SamplesIn(step), room_.get()));
  MOTLEY_ASSIGN_OR_RETURN(written.trained_tokens, CountTrained(step));
  return written;
}

// Every rank knows the samples of all, and so the count, without asking.
absl::StatusOr<int64_t> BatchLoader::CountTrained(int64_t step) const {
  if (!data_.has_rows()) return global_batch_ * seq_len_;
  return engine::CountTrained(data_, Split::kTrain, samples_of_(step, {.samples = global_batch_, .first = 0}));
}

absl::StatusOr<at::Tensor> BatchLoader::CopyToDevice(int64_t numbers) {
  DeviceStream& stream = *backend_.StreamOf(Lane::kCompute);
  MOTLEY_RETURN_IF_ERROR(stream.Call([&] {
    // The stream's own memory: what it runs later may use it again without waiting.
    copy_ = at::empty({numbers}, at::TensorOptions().dtype(at::kLong).device(backend_.tensors()));
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
