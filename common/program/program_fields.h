// The name and the fields of each operation, stated once for printing and for parsing (program_text.cc).
#pragma once

#include <type_traits>

#include "common/program/program.h"

namespace motley::program_fields {

inline const char* Name(const Gather&) { return "gather"; }
inline const char* Name(const Release&) { return "release"; }
inline const char* Name(const Forward&) { return "forward"; }
inline const char* Name(const Recompute&) { return "recompute"; }
inline const char* Name(const Backward&) { return "backward"; }
inline const char* Name(const ZeroGrad&) { return "zero_grad"; }
inline const char* Name(const ReduceScatter&) { return "reduce_scatter"; }
inline const char* Name(const ReduceScalars&) { return "reduce_scalars"; }
inline const char* Name(const OptimizerStep&) { return "optimizer_step"; }

// Calls visitor.Field(key, value) for each integer, visitor.Optional(key, value) for one that is left out when -1, and
// visitor.Keeps(value). Op is const when printing.
template <typename Op, typename Visitor>
void ForEachField(Op& op, Visitor& visitor) {
  using T = std::remove_const_t<Op>;
  constexpr bool kComputes = std::is_same_v<T, Forward> || std::is_same_v<T, Recompute> || std::is_same_v<T, Backward>;
  if constexpr (requires { op.unit; }) visitor.Field("unit", op.unit);
  if constexpr (requires { op.microbatch; }) visitor.Field("mb", op.microbatch);
  if constexpr (requires { op.buffer; }) visitor.Field("buffer", op.buffer);
  if constexpr (kComputes) visitor.Optional("tied", op.tied_buffer);
  if constexpr (requires { op.keep; }) visitor.Keeps(op.keep);
  if constexpr (requires { op.grad; }) visitor.Field("grad", op.grad);
  if constexpr (requires { op.tied_grad; }) visitor.Optional("tied_grad", op.tied_grad);
}

}  // namespace motley::program_fields
