#include "worker/engine/device/cuda_streams.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <functional>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/engine/base/monotonic.h"
#include "worker/engine/device/cuda_status.h"

namespace motley::engine {

CudaEvents::~CudaEvents() {
  for (const cudaEvent_t event : free_) cudaEventDestroy(event);
}

absl::StatusOr<cudaEvent_t> CudaEvents::Take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  MOTLEY_RETURN_IF_ERROR(CudaStatus("making an event", cudaEventCreate(&event)));
  return event;
}

void CudaEvents::GiveBack(cudaEvent_t event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(event);
}

namespace {

class CudaMark : public StreamMark {
 public:
  CudaMark(CudaEvents& events, cudaEvent_t event, std::shared_ptr<const CudaOrigin> origin)
      : events_(events), event_(event), origin_(std::move(origin)) {}
  ~CudaMark() override { events_.GiveBack(event_); }

  absl::StatusOr<bool> Reached() const override {
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    MOTLEY_RETURN_IF_ERROR(CudaStatus("waiting for the card", error));
    return true;
  }
  absl::Duration At() const override {
    float milliseconds = 0;
    if (origin_ == nullptr) return absl::ZeroDuration();
    if (cudaEventElapsedTime(&milliseconds, origin_->event(), event_) != cudaSuccess) {
      cudaGetLastError();  // or the next launch would be blamed for it
      return absl::ZeroDuration();
    }
    return origin_->at() + absl::Milliseconds(milliseconds);
  }
  cudaEvent_t event() const { return event_; }

 private:
  CudaEvents& events_;
  const cudaEvent_t event_;
  const std::shared_ptr<const CudaOrigin> origin_;
};

}  // namespace

class CudaStream : public DeviceStream {
 public:
  CudaStream(CudaStreams& streams, c10::cuda::CUDAStream stream) : streams_(streams), stream_(stream) {}

  absl::Status Launch(std::function<absl::Status()> work) override { return Call(work); }
  absl::Status Call(const std::function<absl::Status()>& work) override {
    const c10::cuda::CUDAStreamGuard current(stream_);
    return work();
  }
  absl::Status Wait(StreamMarkPtr mark) override {
    return CudaStatus("a stream's wait for another",
                      cudaStreamWaitEvent(stream_.stream(), static_cast<const CudaMark&>(*mark).event(), 0));
  }
  absl::StatusOr<StreamMarkPtr> Mark() override {
    MOTLEY_ASSIGN_OR_RETURN(const cudaEvent_t event, streams_.events_.Take());
    auto mark = std::make_shared<const CudaMark>(streams_.events_, event, streams_.origin());
    MOTLEY_RETURN_IF_ERROR(CudaStatus("recording an event", cudaEventRecord(event, stream_.stream())));
    return mark;
  }
  absl::Status Settle() override { return streams_.Settle(); }
  bool Idle() const override {
    const cudaError_t error = cudaStreamQuery(stream_.stream());
    if (error != cudaSuccess) cudaGetLastError();
    return error != cudaErrorNotReady;
  }
  void* handle() const override { return stream_.stream(); }

 private:
  CudaStreams& streams_;
  const c10::cuda::CUDAStream stream_;
};

std::unique_ptr<DeviceStream> CudaStreams::Make(bool high_priority) {
  auto stream = std::make_unique<CudaStream>(*this, c10::cuda::getStreamFromPool(high_priority, /*device=*/0));
  const std::lock_guard<std::mutex> lock(mutex_);
  made_.push_back(static_cast<cudaStream_t>(stream->handle()));
  return stream;
}

absl::Status CudaStreams::Settle() {
  std::vector<cudaStream_t> streams;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams = made_;
  }
  for (const cudaStream_t stream : streams) {
    MOTLEY_RETURN_IF_ERROR(CudaStatus("waiting for the card before a step", cudaStreamSynchronize(stream)));
  }
  MOTLEY_ASSIGN_OR_RETURN(const cudaEvent_t event, events_.Take());
  absl::Status recorded = CudaStatus("recording an event", cudaEventRecord(event, c10::cuda::getDefaultCUDAStream(0).stream()));
  if (recorded.ok()) recorded = CudaStatus("waiting for an event", cudaEventSynchronize(event));
  auto origin = std::make_shared<const CudaOrigin>(events_, event, absl::Nanoseconds(MonotonicNs()));
  MOTLEY_RETURN_IF_ERROR(recorded);
  const std::lock_guard<std::mutex> lock(mutex_);
  origin_ = std::move(origin);
  return absl::OkStatus();
}

std::shared_ptr<const CudaOrigin> CudaStreams::origin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return origin_;
}

}  // namespace motley::engine
