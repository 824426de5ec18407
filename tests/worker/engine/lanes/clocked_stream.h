// A stream with a clock of its own: work runs at once, on the caller's thread, and takes as long as the test says, whatever the
// host needs for it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "worker/engine/lanes/device_stream.h"

namespace motley::engine {

class ClockedStream : public DeviceStream {
 public:
  // `takes`: of each piece of work, by its number since the stream was settled, from 0.
  explicit ClockedStream(std::function<absl::Duration(int number)> takes) : takes_(std::move(takes)) {}

  absl::Status Launch(std::function<absl::Status()> work) override {
    const absl::Status status = work();
    now_ += takes_(launched_++);
    return status;
  }
  absl::Status Call(const std::function<absl::Status()>& work) override { return Launch(work); }
  absl::Status Wait(StreamMarkPtr) override { return absl::OkStatus(); }
  absl::StatusOr<StreamMarkPtr> Mark() override { return std::make_shared<ClockedMark>(now_, looks_); }
  absl::Status Settle() override {
    launched_ = 0;
    return absl::OkStatus();
  }
  bool Idle() const override { return true; }
  void* handle() const override { return const_cast<ClockedStream*>(this); }

  int launched() const { return launched_; }  // since it was settled
  int looks() const { return *looks_; }       // how often somebody asked whether it had got somewhere

 private:
  class ClockedMark : public StreamMark {
   public:
    ClockedMark(absl::Duration at, std::shared_ptr<int> looks) : at_(at), looks_(std::move(looks)) {}
    absl::StatusOr<bool> Reached() const override {
      ++*looks_;
      return true;
    }
    absl::Duration At() const override { return at_; }

   private:
    const absl::Duration at_;
    const std::shared_ptr<int> looks_;
  };

  const std::function<absl::Duration(int)> takes_;
  absl::Duration now_;
  const std::shared_ptr<int> looks_ = std::make_shared<int>(0);
  int launched_ = 0;
};

}  // namespace motley::engine
