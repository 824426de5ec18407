// ListEvents: durable events, oldest first; with follow the stream stays open.
#pragma once

#include <deque>

#include "absl/status/statusor.h"
#include "coordinator/core/core.h"
#include "coordinator/rpc/stream_source.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

class ListEventsSource : public StreamSource<v1::Event> {
 public:
  explicit ListEventsSource(const v1::ListEventsRequest& request)
      : job_(request.job_id()), follow_(request.follow()), after_(request.after_sequence()) {}
  // NOT_FOUND: no such job.
  absl::StatusOr<Pull> Next(Core& core, v1::Event* out) override;
  Topic topic() const override { return {NewsKind::kEvents, job_}; }

 private:
  const JobId job_;
  const bool follow_;
  int64_t after_;
  std::deque<EventRecord> page_;
};

}  // namespace motley::coordinator
