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
  if constexpr (requires { op.unit, op.more_units; }) {
    visitor.Span("block", op.unit, op.more_units);
  } else if constexpr (requires { op.unit; }) {
    visitor.Field("block", op.unit);
  }
  if constexpr (requires { op.first_unit; }) visitor.OptionalSpan("block", op.first_unit, op.more_units);
  if constexpr (requires { op.elements; }) visitor.Elements("elements", op.elements);
  if constexpr (requires { op.more_microbatches; }) {
    visitor.Span("mb", op.microbatch, op.more_microbatches);
  } else if constexpr (requires { op.microbatch; }) {
    visitor.Field("mb", op.microbatch);
  }
  if constexpr (requires { op.segment; }) visitor.Word("segment", op.segment);
  if constexpr (requires { op.buffer; }) visitor.Field("buffer", op.buffer);
  if constexpr (requires { op.tied_buffer; }) visitor.Optional("tied", op.tied_buffer);
  if constexpr (requires { op.keep; }) visitor.Word("keep", op.keep);
  if constexpr (requires { op.operators; }) visitor.Operators("ops", op.operators);
  if constexpr (requires { op.grad, op.first_unit; }) {  // a step's
    visitor.Optional("slot", op.slot);
    visitor.Optional("grad", op.grad);
  } else if constexpr (requires { op.grad; }) {
    visitor.Field("grad", op.grad);
  }
  if constexpr (requires { op.tied_grad; }) visitor.Optional("tied_grad", op.tied_grad);
  if constexpr (requires { op.of; }) visitor.Word("of", op.of);
  if constexpr (requires { op.tp_group; }) visitor.Optional("tp", op.tp_group);
  if constexpr (requires { op.group; }) visitor.Field("group", op.group);
  if constexpr (requires { op.root; }) visitor.Field("root", op.root);
  if constexpr (requires { op.first; }) visitor.Field("first", op.first);
  if constexpr (requires { op.samples; }) visitor.Field("samples", op.samples);
  if constexpr (requires { op.peer; }) visitor.Field("peer", op.peer);
  if constexpr (requires { op.slot, op.unit; }) visitor.Field("slot", op.slot);
}

struct ByteCounter {
  constexpr void Field(const char*, const int32_t& value) { bytes += sizeof(value); }
  constexpr void Optional(const char*, const int32_t& value) { bytes += sizeof(value); }
  constexpr void Span(const char*, const int32_t& first, const int32_t& more) { bytes += sizeof(first) + sizeof(more); }
  constexpr void OptionalSpan(const char*, const int32_t& first, const int32_t& more) { bytes += sizeof(first) + sizeof(more); }
  constexpr void Elements(const char*, const ArrayRange& value) { bytes += sizeof(value); }
  constexpr void Operators(const char*, const uint32_t& value) { bytes += sizeof(value); }
  template <typename Choice>
  constexpr void Word(const char*, const Choice& value) {
    bytes += sizeof(value);
  }
  size_t bytes = 0;
};
template <typename Op>
constexpr size_t BytesKnown() {
  ByteCounter counter;
  const Op op{};
  VisitKnown(op, counter);
  return counter.bytes;
}

// Calls visitor.Field(key, value) for each integer, and
//   Optional(key, value)        for one that is left out when -1,
//   Span(key, first, more)      for a range "first-last", more = last - first,
//   OptionalSpan(...)           for one that is left out when its first is -1,
//   Elements(key, range)        for one that is left out when it is the whole array,
//   Operators(key, bits)        for a set of operators, left out when 0,
//   Word(key, choice)           for one of WordsOf(choice); the empty word is left out.
// Op is const when printing.
template <typename Op, typename Visitor>
void ForEachField(Op& op, Visitor& visitor) {
  using T = std::remove_const_t<Op>;
  static_assert(std::is_empty_v<T> || BytesKnown<T>() == sizeof(T), "a field of this operation has no key in VisitKnown");
  VisitKnown(op, visitor);
}

}  // namespace motley::program_fields
