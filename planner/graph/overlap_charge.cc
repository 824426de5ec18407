#include "planner/graph/overlap_charge.h"

#include <cstddef>
#include <utility>
#include <variant>

#include "planner/graph/pass_seconds.h"

namespace motley::planner {
namespace {

class Charger {
 public:
  explicit Charger(const Program& program) : of_buffer_(program.parameter_buffers.size(), 0) {}

  template <typename Op>
  void Collective(const Op& op, double seconds) {
    if constexpr (requires { op.buffer; }) {
      of_buffer_[static_cast<size_t>(op.buffer)] += seconds;
    } else {
      of_sums_ += seconds;
    }
  }

  // What the instruction pays; 0 where it takes no time.
  template <typename Op>
  double Paid(const Op& op) {
    if constexpr (requires { PassOf(op); }) {
      double paid = std::exchange(of_sums_, 0);
      if constexpr (requires { op.tied_buffer; }) paid += TakeBuffer(op.buffer) + TakeBuffer(op.tied_buffer);
      return paid;
    }
    return 0;
  }
  double Paid(const OptimizerStep&) { return std::exchange(of_sums_, 0); }

 private:
  double TakeBuffer(int32_t buffer) { return buffer < 0 ? 0 : std::exchange(of_buffer_[static_cast<size_t>(buffer)], 0); }

  std::vector<double> of_buffer_;
  double of_sums_ = 0;
};

}  // namespace

std::vector<double> OverlapCharges(const Program& program, absl::FunctionRef<double(const Operation&)> seconds) {
  Charger charger(program);
  std::vector<double> charges;
  charges.reserve(program.instructions.size());
  for (const Instruction& instruction : program.instructions) {
    const double paid = std::visit(
        [&](const auto& op) {
          using Op = std::decay_t<decltype(op)>;
          if constexpr (Op::kTraits.lane == Lane::kCollective) charger.Collective(op, seconds(instruction.op));
          return charger.Paid(op);
        },
        instruction.op);
    charges.push_back(paid);
  }
  return charges;
}

}  // namespace motley::planner
