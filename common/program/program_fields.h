// The fields of operations by their keys in the text form, stated once for printing and for parsing (program_text.cc). An
// operation of these fields needs nothing here; one with a field of another name does not compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/program/operation.h"

namespace motley::program_fields {

// In the order of the text.
template <typename Op, typename Visitor>
constexpr void VisitKnown(Op& op, Visitor& visitor) {
  if constexpr (requires { op.unit; }) visitor.Field("unit", op.unit);
  if constexpr (requires { op.microbatch; }) visitor.Field("mb", op.microbatch);
  if constexpr (requires { op.buffer; }) visitor.Field("buffer", op.buffer);
  if constexpr (requires { op.tied_buffer; }) visitor.Optional("tied", op.tied_buffer);
  if constexpr (requires { op.keep; }) visitor.Keeps(op.keep);
  if constexpr (requires { op.grad; }) visitor.Field("grad", op.grad);
  if constexpr (requires { op.tied_grad; }) visitor.Optional("tied_grad", op.tied_grad);
  if constexpr (requires { op.group; }) visitor.Field("group", op.group);
  if constexpr (requires { op.first; }) visitor.Field("first", op.first);
  if constexpr (requires { op.samples; }) visitor.Field("samples", op.samples);
  if constexpr (requires { op.peer; }) visitor.Field("peer", op.peer);
}

struct ByteCounter {
  constexpr void Field(const char*, const int32_t& value) { bytes += sizeof(value); }
  constexpr void Optional(const char*, const int32_t& value) { bytes += sizeof(value); }
  constexpr void Keeps(const Keep& value) { bytes += sizeof(value); }
  size_t bytes = 0;
};
template <typename Op>
constexpr size_t BytesKnown() {
  ByteCounter counter;
  const Op op{};
  VisitKnown(op, counter);
  return counter.bytes;
}

// Calls visitor.Field(key, value) for each integer, visitor.Optional(key, value) for one that is left out when -1, and
// visitor.Keeps(value). Op is const when printing.
template <typename Op, typename Visitor>
void ForEachField(Op& op, Visitor& visitor) {
  using T = std::remove_const_t<Op>;
  static_assert(std::is_empty_v<T> || BytesKnown<T>() == sizeof(T), "a field of this operation has no key in VisitKnown");
  VisitKnown(op, visitor);
}

}  // namespace motley::program_fields
