#include "common/program/program.h"

#include "common/program/program_fields.h"

namespace motley {

// Release runs where the parameters were last used, so that program order alone puts it after its uses.
Lane LaneOf(const Operation& op) {
  const bool collective = std::holds_alternative<Gather>(op) || std::holds_alternative<ReduceScatter>(op) ||
                          std::holds_alternative<ReduceScalars>(op);
  return collective ? Lane::kCollective : Lane::kCompute;
}

std::string_view OperationName(const Operation& op) {
  return std::visit([](const auto& o) { return std::string_view(program_fields::Name(o)); }, op);
}

}  // namespace motley
