// Gives each step its batch. On a device with a memory of its own the next one is written while a step runs, into pinned memory
// of the host, from where the compute lane's stream copies it without the host's waiting (docs/inside/cuda.md). Elsewhere a batch
// is made when it is asked for: there is nothing to copy, and a second batch would be memory that the plan does not count.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/dataset.h"
#include "common/program/program.h"
#include "worker/engine/batch.h"
#include "worker/engine/device/device_backend.h"

namespace motley::engine {

// Of one program's training batches. One thread, between passes over programs.
class BatchLoader {
 public:
  // The indices of a microbatch's samples in a step: nothing else may decide them. Called on another thread, too.
  using SamplesOfStep = std::function<std::vector<int64_t>(int64_t step, const Microbatch& microbatch)>;

  // All must outlive the loader. To be made while the device is idle: it may wait for that. An error: the host has no pinned
  // memory.
  static absl::StatusOr<std::unique_ptr<BatchLoader>> Make(const Dataset& data, const Program& program, int64_t seq_len,
                                                           int64_t global_batch, DeviceBackend& backend,
                                                           SamplesOfStep samples_of);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // For work on the compute lane: tensors may be written only when its stream gets there. The batch after it is begun; it is
  // thrown away, and its error too, where another step is asked for next. Errors of Dataset; throws what `samples_of` throws.
  absl::StatusOr<Batch> Load(int64_t step);

 private:
  using PinnedRoom = std::unique_ptr<int64_t, std::function<void(int64_t*)>>;

  // What is written, and the targets of all ranks' samples of the step that count.
  struct Written {
    WrittenBatch batch;
    int64_t trained_tokens = 0;
  };

  BatchLoader(const Dataset& data, const Program& program, int64_t seq_len, int64_t global_batch, DeviceBackend& backend,
              SamplesOfStep samples_of)
      : data_(data),
        program_(program),
        seq_len_(seq_len),
        global_batch_(global_batch),
        backend_(backend),
        samples_of_(std::move(samples_of)) {}

  SamplesOf SamplesIn(int64_t step) const;
  // Into the pinned room, once what lies there is copied.
  absl::StatusOr<Written> Write(int64_t step);
  absl::StatusOr<int64_t> CountTrained(int64_t step) const;
  absl::StatusOr<at::Tensor> CopyToDevice(int64_t numbers);
  absl::Status AwaitCopy();

  const Dataset& data_;
  const Program& program_;
  const int64_t seq_len_, global_batch_;
  DeviceBackend& backend_;
  const SamplesOfStep samples_of_;
  PinnedRoom room_;  // null: batches are made when they are asked for
  // Of the copy under way: what it writes lives until it is over, whoever drops the batch. The next batch's thread's, while
  // there is one.
  StreamMarkPtr copied_;
  at::Tensor copy_;
  int64_t next_step_ = 0;
  std::future<absl::StatusOr<Written>> next_;  // whose thread has written next_step_'s
};

}  // namespace motley::engine
