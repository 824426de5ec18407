// What a program's header says, by unit and by group. Part of Validate (program.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/program/program.h"

namespace motley {

struct ProgramIndex {
  // `program` has passed ValidateHeader.
  explicit ProgramIndex(const Program& program) : place(program.num_units, -1), gradient_home(program.num_units, -1) {
    for (size_t i = 0; i < program.units.size(); ++i) place[program.units[i]] = static_cast<int32_t>(i);
    for (size_t i = 0; i < program.gradient_buffers.size(); ++i) {
      const int32_t unit = program.gradient_buffers[i].home_of;
      if (unit >= 0) gradient_home[unit] = static_cast<int32_t>(i);
    }
    for (const std::vector<int32_t>& members : program.groups) {
      in_group.push_back(std::find(members.begin(), members.end(), program.rank) != members.end());
    }
  }

  std::vector<int32_t> place;          // by unit: among the rank's units; -1 = not held
  std::vector<int32_t> gradient_home;  // by unit: its home among the gradient buffers; -1 = none
  std::vector<bool> in_group;          // by group: whether the rank is a member
};

}  // namespace motley
