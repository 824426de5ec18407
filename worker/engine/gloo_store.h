// Gloo's rendezvous store on top of the rank's host: keys travel through the worker's session. Throws, as Gloo expects.
#pragma once

#include <gloo/rendezvous/store.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/engine/engine.h"

namespace motley::engine {

class GlooStore : public gloo::rendezvous::Store {
 public:
  GlooStore(RankHost& host, std::string prefix, absl::Duration timeout)
      : host_(host), prefix_(std::move(prefix)), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const absl::Status status = host_.KvSet(prefix_ + key, std::string(data.begin(), data.end()));
    if (!status.ok()) throw std::runtime_error("rendezvous key " + prefix_ + key + ": " + status.ToString());
  }
  std::vector<char> get(const std::string& key) override {
    const absl::StatusOr<std::string> value = host_.KvGet(prefix_ + key, timeout_);
    if (!value.ok()) throw std::runtime_error("rendezvous key " + prefix_ + key + ": " + value.status().ToString());
    return std::vector<char>(value->begin(), value->end());
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  RankHost& host_;
  const std::string prefix_;
  const absl::Duration timeout_;
};

}  // namespace motley::engine
