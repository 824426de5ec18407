// Writes one rank's program: keeps for each lane what it surely comes after, so that an instruction names only what its lane
// would not wait for anyway. Part of the program writer.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "common/program/program.h"

namespace motley::planner {

class RankWriter {
 public:
  explicit RankWriter(Program header) : program_(std::move(header)) {
    for (auto& of_lane : waited_) of_lane.fill(-1);
    gathered_.assign(program_.parameter_buffers.size(), -1);
    released_ = gathered_;
    written_.assign(program_.gradient_buffers.size(), -1);
    reduced_ = written_;
    fresh_.assign(program_.gradient_buffers.size(), true);
  }

  const Program& program() const { return program_; }
  Program Finish() && { return std::move(program_); }
  // -1 in `after`: nothing. The instruction's index.
  int32_t Add(Operation op, std::initializer_list<int32_t> after);
  // In place of another one of the same lane that waits for the same.
  void Put(int32_t instruction, Operation op) { program_.instructions[instruction].op = std::move(op); }

  void AddGather(int32_t unit, int32_t buffer, int32_t group);
  // Frees the buffer; where nothing used it, not before its gather.
  void AddRelease(int32_t buffer);
  // Zeroes what no backward has written.
  void AddReduce(int32_t unit, int32_t buffer, int32_t group);

  // What a use of the buffer waits for.
  int32_t Gathered(int32_t buffer) const { return buffer < 0 ? -1 : gathered_[buffer]; }
  // A backward that adds to the buffer waits for this.
  int32_t Reduced(int32_t buffer) const { return buffer < 0 ? -1 : reduced_[buffer]; }
  void Wrote(int32_t buffer, int32_t instruction);

 private:
  Program program_;
  std::array<std::array<int32_t, kNumLanes>, kNumLanes> waited_;  // [lane][other]: newest instruction it comes after
  std::vector<int32_t> gathered_, released_;                      // by parameter buffer: newest of each
  std::vector<int32_t> written_, reduced_;                        // by gradient buffer
  std::vector<bool> fresh_;                                       // by gradient buffer: nothing written since it was reduced
};

}  // namespace motley::planner
