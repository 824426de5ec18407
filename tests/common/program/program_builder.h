// Valid programs for tests: one layered step as a lowering would write it, without its refinements.
#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "common/model/operators.h"
#include "common/program/program.h"
#include "common/program/program_fields.h"

namespace motley {

struct ProgramShape {
  int32_t num_layers = 2;
  std::vector<int64_t> microbatches = {2, 1};  // their samples
  bool tied = false;
  bool recompute = false;
  bool evaluation = false;
};

// All ranks hold all units. Two parameter buffers in turn (a third for the embedding of a tied head), as many gradient buffers.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const ProgramShape& shape) : shape_(shape) {
    program_.kind = shape.evaluation ? ProgramKind::kEvaluation : ProgramKind::kTraining;
    program_.rank = 1;
    program_.world = 3;
    program_.num_units = shape.num_layers + 2;
    for (int32_t unit = 0; unit < program_.num_units; ++unit) program_.units.push_back(unit);
    program_.groups = {{2}, {0, 1, 2}};
    for (int64_t first = 40; const int64_t samples : shape.microbatches) {
      program_.microbatches.push_back({samples, first});
      first += samples;
    }
    program_.parameter_buffers.assign(shape.tied ? 3 : 2, {.elements = 100});
    if (!shape.evaluation) program_.gradient_buffers.assign(shape.tied ? 3 : 2, {.elements = 100});
  }

  Program Build() {
    const int32_t head = program_.num_units - 1;
    if (shape_.tied) GatherInto(0, 2);
    for (int32_t unit = 0; unit <= head; ++unit) {
      const int32_t buffer = unit % 2;
      GatherInto(unit, buffer);
      for (int32_t m = 0; m < Count(); ++m)
        Add(Forward{unit, m, buffer, TiedBuffer(unit), KeepOf(unit)}, {gathered_[buffer], TiedGather()});
      if (unit == head && Count() > 0) last_loss_ = Last();
      ReleaseBuffer(buffer);
    }
    if (!shape_.evaluation) {
      for (int32_t unit = head; unit >= 0; --unit) BackwardUnit(unit);
    }
    Add(ReduceScalars{}, {last_loss_});
    if (!shape_.evaluation) Add(OptimizerStep{}, {Last()});
    return std::move(program_);
  }

 private:
  static constexpr int32_t kAllRanks = 1;  // of the groups

  int32_t Count() const { return static_cast<int32_t>(shape_.microbatches.size()); }
  int32_t Last() const { return static_cast<int32_t>(program_.instructions.size()) - 1; }
  bool IsHead(int32_t unit) const { return unit == program_.num_units - 1; }
  bool IsLayer(int32_t unit) const { return unit > 0 && !IsHead(unit); }
  int32_t TiedBuffer(int32_t unit) const { return shape_.tied && IsHead(unit) ? 2 : -1; }
  int32_t TiedGather() const { return shape_.tied ? gathered_[2] : -1; }
  Keep KeepOf(int32_t unit) const {
    if (shape_.evaluation) return Keep::kNothing;
    return shape_.recompute && IsLayer(unit) ? Keep::kBoundary : Keep::kAll;
  }

  void Add(Operation op, std::vector<int32_t> after) {
    std::erase(after, -1);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    program_.instructions.push_back({op, std::move(after)});
  }
  void GatherInto(int32_t unit, int32_t buffer) {
    Add(Gather{unit, buffer, kAllRanks}, {released_[buffer]});
    gathered_[buffer] = Last();
  }
  void ReleaseBuffer(int32_t buffer) {
    Add(Release{buffer}, {gathered_[buffer]});
    released_[buffer] = Last();
  }
  void BackwardUnit(int32_t unit) {
    const int32_t buffer = unit % 2;
    // The tied embedding's gradients stay in buffer 2 from the head's backward to its own.
    const int32_t grad = shape_.tied && unit == 0 ? 2 : buffer;
    GatherInto(unit, buffer);
    if (Count() == 0) Add(ZeroGrad{unit, grad}, {reduced_[grad]});
    for (int32_t m = 0; m < Count(); ++m) {
      if (KeepOf(unit) == Keep::kBoundary) Add(Recompute{unit, m, buffer, TiedBuffer(unit)}, {gathered_[buffer]});
      const int32_t tied_grad = TiedBuffer(unit) >= 0 ? 2 : -1;
      Add(Backward{unit, m, buffer, TiedBuffer(unit), grad, tied_grad}, {gathered_[buffer], reduced_[grad]});
    }
    const int32_t last_write = Last();
    if (IsHead(unit) && Count() > 0) last_loss_ = last_write;
    ReleaseBuffer(buffer);
    Add(ReduceScatter{unit, grad, kAllRanks}, {last_write});
    reduced_[grad] = Last();
  }

  const ProgramShape shape_;
  Program program_;
  int32_t gathered_[3] = {-1, -1, -1}, released_[3] = {-1, -1, -1}, reduced_[3] = {-1, -1, -1};
  int32_t last_loss_ = -1;
};

inline Program BuildProgram(const ProgramShape& shape = {}) { return ProgramBuilder(shape).Build(); }

// Fills an operation, with indices that may exist or not.
class RandomFields {
 public:
  explicit RandomFields(std::mt19937& random) : random_(random) {}
  void Field(const char*, int32_t& value) { value = Pick(0, 9); }
  void Optional(const char*, int32_t& value) { value = Pick(-1, 3); }
  void Span(const char*, int32_t& first, int32_t& more) { first = Pick(0, 9), more = std::max(0, Pick(-3, 2)); }
  void OptionalSpan(const char* key, int32_t& first, int32_t& more) {
    first = -1, more = 0;
    if (Pick(0, 1) == 0) Span(key, first, more);
  }
  void Elements(const char*, ArrayRange& range) { range = Pick(0, 1) == 0 ? ArrayRange{} : ArrayRange{Pick(0, 99), Pick(1, 99)}; }
  void Operators(const char*, uint32_t& operators) { operators = static_cast<uint32_t>(Pick(0, (1 << kNumOps) - 1)); }
  template <typename Choice>
  void Word(const char*, Choice& choice) {
    choice = static_cast<Choice>(Pick(0, static_cast<int32_t>(WordsOf(choice).size()) - 1));
  }

 private:
  int32_t Pick(int32_t low, int32_t high) { return std::uniform_int_distribution<int32_t>(low, high)(random_); }
  std::mt19937& random_;
};

// Any program at all, valid or not: for the text form.
inline Program RandomProgram(std::mt19937& random) {
  const auto pick = [&random](int32_t low, int32_t high) { return std::uniform_int_distribution<int32_t>(low, high)(random); };
  const auto size = [&random] { return std::uniform_int_distribution<int64_t>(0, int64_t{1} << 50)(random); };
  const auto buffers = [&] {
    std::vector<UnitBuffer> list(pick(0, 4));
    for (UnitBuffer& buffer : list) buffer = {size(), pick(-2, 9), 1 + std::max(0, pick(-2, 2))};
    for (UnitBuffer& buffer : list) buffer.num_units = buffer.home_of == -2 ? 1 : buffer.num_units;
    return list;
  };
  Program p;
  p.kind = pick(0, 1) ? ProgramKind::kTraining : ProgramKind::kEvaluation;
  p.world = pick(1, 64);
  p.rank = pick(0, p.world - 1);
  p.num_units = pick(0, 100);
  p.units.resize(pick(0, 6));
  for (int32_t& unit : p.units) unit = pick(-1, 9);
  p.groups.resize(pick(0, 3));
  for (std::vector<int32_t>& members : p.groups) {
    members.resize(pick(1, 4));
    for (int32_t& member : members) member = pick(-1, 64);
  }
  p.microbatches.resize(pick(0, 4));
  for (Microbatch& microbatch : p.microbatches) microbatch = {size(), size()};
  p.parameter_buffers = buffers();
  p.gradient_buffers = buffers();
  p.slots.resize(pick(0, 3));
  for (int64_t& bytes : p.slots) bytes = size();
  const int32_t count = pick(0, 40);
  for (int32_t i = 0; i < count; ++i) {
    Instruction instruction{kEveryOperation[pick(0, static_cast<int32_t>(kEveryOperation.size()) - 1)], {}};
    RandomFields fields(random);
    std::visit([&fields](auto& op) { program_fields::ForEachField(op, fields); }, instruction.op);
    for (int32_t j = 0; j < i; ++j) {
      if (pick(0, 9) == 0) instruction.after.push_back(j);
    }
    p.instructions.push_back(std::move(instruction));
  }
  return p;
}

}  // namespace motley
