// A group of all devices that computes the whole model.
#pragma once

#include <cstddef>
#include <numeric>

#include "planner/setting/setting.h"
#include "planner/split/group_split.h"

namespace motley::planner {

inline GroupQuestion WholeModel(const Setting& setting) {
  GroupQuestion question;
  question.devices.resize(static_cast<size_t>(setting.num_devices()));
  std::iota(question.devices.begin(), question.devices.end(), 0);
  question.batch = setting.workload.global_batch;
  question.layers = setting.workload.model.num_layers;
  question.embedding = question.head = true;
  return question;
}

}  // namespace motley::planner
