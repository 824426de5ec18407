// Distinct types for the things that must not be mixed up. Each wraps a string or an integer, compares, hashes and prints.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

namespace motley {

template <typename Tag>
class StringId {
 public:
  StringId() = default;
  explicit StringId(std::string value) : value_(std::move(value)) {}
  const std::string& value() const { return value_; }
  bool empty() const { return value_.empty(); }
  friend auto operator<=>(const StringId&, const StringId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StringId& id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, const StringId& id) { return out << id.value_; }

 private:
  std::string value_;
};

template <typename Tag>
class IntId {
 public:
  constexpr IntId() = default;
  constexpr explicit IntId(int64_t value) : value_(value) {}
  constexpr int64_t value() const { return value_; }
  friend constexpr auto operator<=>(const IntId&, const IntId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const IntId& id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, const IntId& id) { return out << id.value_; }

 private:
  int64_t value_ = 0;
};

using JobId = StringId<struct JobIdTag>;
using JobUid = StringId<struct JobUidTag>;  // common/base/job_uid.h: random, where an id may be given twice
using NodeName = StringId<struct NodeNameTag>;
using DeviceId = StringId<struct DeviceIdTag>;  // "node/gpu0": stable, never a rank order
using Epoch = IntId<struct EpochTag>;           // of a job: durable, increasing; the fence against two owners of one step

// The node's part of "node/gpu0".
inline NodeName NodeOf(const DeviceId& device) { return NodeName(device.value().substr(0, device.value().find('/'))); }

}  // namespace motley
