// What all messages of the worker session about a job begin with.
#pragma once

namespace motley::wire {

// Job and epoch stand in every message about a job.
template <typename Message, typename Value>
Message* Stamp(const Value& value, Message* message) {
  message->set_job_id(value.job.value());
  message->set_epoch(value.epoch.value());
  return message;
}

}  // namespace motley::wire
