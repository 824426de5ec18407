// A message's fields are listed once, and the list is read both ways:
//
//   WIRE_MESSAGE(v1::StopEpoch, StopCommand) {
//     WIRE_FIELD(save, plain.save);
//     WIRE_FIELD(reason, plain.reason);
//   }
//
// defines ToProto(const StopCommand&) and FromProto(const v1::StopEpoch&). In the list `proto` is the message and `plain` the
// value; the one that is read is const. What only one way does stands under `if constexpr (Way::kWrites)`.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace motley::wire {

struct ToWire {
  static constexpr bool kWrites = true;
  template <typename Message>
  using Proto = Message;
  template <typename Value>
  using Plain = const Value;
};

struct FromWire {
  static constexpr bool kWrites = false;
  template <typename Message>
  using Proto = const Message;
  template <typename Value>
  using Plain = Value;

  absl::Status status;  // the first error of a message within this one

  template <typename Value>
  void Take(Value read, Value* value) {
    *value = std::move(read);
  }
  template <typename Value>
  void Take(absl::StatusOr<Value> read, Value* value) {
    if (read.ok()) {
      *value = *std::move(read);
    } else {
      status.Update(read.status());
    }
  }
};

// A single value as its field has it: ids without their type, durations in seconds, enumerations by number.
template <typename Value>
decltype(auto) OnWire(const Value& value) {
  if constexpr (requires { value.value(); }) {
    return value.value();
  } else if constexpr (std::same_as<Value, absl::Duration>) {
    return absl::ToDoubleSeconds(value);
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<int>(value);
  } else {
    return (value);
  }
}
template <typename Value, typename Field>
Value OffWire(const Field& field) {
  if constexpr (std::same_as<Value, absl::Duration>) {
    return absl::Seconds(field);
  } else {
    return Value(field);
  }
}

// An enumeration by a table: what the other side lacks is nothing.
template <typename Plain, typename Wire>
struct EnumRow {
  Plain plain;
  Wire wire;
};
template <typename Plain, typename Wire, size_t n>
std::optional<Wire> WireOf(const EnumRow<Plain, Wire> (&rows)[n], Plain plain) {
  for (const auto& row : rows) {
    if (row.plain == plain) return row.wire;
  }
  return std::nullopt;
}
template <typename Plain, typename Wire, size_t n>
std::optional<Plain> PlainOf(const EnumRow<Plain, Wire> (&rows)[n], Wire wire) {
  for (const auto& row : rows) {
    if (row.wire == wire) return row.plain;
  }
  return std::nullopt;
}

// A kind of message: the field of `Message` that is set for it, and what it is here.
template <typename Message, typename Value>
struct Kind {
  bool (Message::*is)() const;
  void (*write)(const Value&, Message*);
  absl::StatusOr<Value> (*read)(const Message&);
};

// A variant by the table of its kinds.
template <typename Message, typename... Values>
Message WriteKind(const std::tuple<Kind<Message, Values>...>& kinds, const std::variant<Values...>& value) {
  Message message;
  std::visit([&](const auto& held) { std::get<Kind<Message, std::remove_cvref_t<decltype(held)>>>(kinds).write(held, &message); },
             value);
  return message;
}
// Nothing: of a kind that the table lacks.
template <typename Message, typename... Values>
absl::StatusOr<std::optional<std::variant<Values...>>> ReadKind(const std::tuple<Kind<Message, Values>...>& kinds,
                                                                const Message& message) {
  absl::StatusOr<std::optional<std::variant<Values...>>> out = std::nullopt;
  const auto read_if = [&](const auto& kind) {
    if (!(message.*kind.is)()) return;
    auto value = kind.read(message);
    if (value.ok()) {
      out = *std::move(value);
    } else {
      out = value.status();
    }
  };
  std::apply([&](const auto&... kind) { (read_if(kind), ...); }, kinds);
  return out;
}

}  // namespace motley::wire

// A row of such a table: WIRE_KIND(v1::CoordinatorMessage, stop_epoch, StopCommand).
#define WIRE_KIND(Message, name, Value)                                                                              \
  Kind<Message, Value> {                                                                                             \
    &Message::has_##name, [](const Value& value, Message* message) { *message->mutable_##name() = ToProto(value); }, \
        [](const Message& message) -> absl::StatusOr<Value> { return FromProto(message.name()); }                    \
  }

// The list alone, for messages whose other fields are converted by hand.
#define WIRE_FIELDS(Message, Value)                                                    \
  template <typename Way>                                                              \
  void Fields([[maybe_unused]] Way& way, typename Way::template Proto<Message>& proto, \
              typename Way::template Plain<Value>& plain)

// The list with both conversions.
#define WIRE_MESSAGE(Message, Value)      \
  WIRE_TO_PROTO(Message, Value)           \
  Value FromProto(const Message& proto) { \
    Value plain;                          \
    FromWire way;                         \
    Fields(way, proto, plain);            \
    return plain;                         \
  }                                       \
  WIRE_FIELDS(Message, Value)

// The same where a field may be refused: FromProto gives a StatusOr.
#define WIRE_CHECKED_MESSAGE(Message, Value)              \
  WIRE_TO_PROTO(Message, Value)                           \
  absl::StatusOr<Value> FromProto(const Message& proto) { \
    Value plain;                                          \
    FromWire way;                                         \
    Fields(way, proto, plain);                            \
    if (!way.status.ok()) return way.status;              \
    return plain;                                         \
  }                                                       \
  WIRE_FIELDS(Message, Value)

#define WIRE_TO_PROTO(Message, Value)   \
  WIRE_FIELDS(Message, Value);          \
  Message ToProto(const Value& plain) { \
    Message proto;                      \
    ToWire way;                         \
    Fields(way, proto, plain);          \
    return proto;                       \
  }

#define WIRE_FIELD(name, member)                                             \
  do {                                                                       \
    if constexpr (Way::kWrites) {                                            \
      proto.set_##name(OnWire(member));                                      \
    } else {                                                                 \
      member = OffWire<std::remove_cvref_t<decltype(member)>>(proto.name()); \
    }                                                                        \
  } while (false)

// A number that is never negative: one that is, is read as 0.
#define WIRE_COUNT(name, member)                                                       \
  do {                                                                                 \
    WIRE_FIELD(name, member);                                                          \
    if constexpr (!Way::kWrites) member = std::max<decltype(proto.name())>(member, 0); \
  } while (false)

// A std::optional of a single value.
#define WIRE_OPTIONAL(name, member)                  \
  do {                                               \
    if constexpr (Way::kWrites) {                    \
      if (member) proto.set_##name(OnWire(*member)); \
    } else if (proto.has_##name()) {                 \
      member = proto.name();                         \
    }                                                \
  } while (false)

// A list of texts or ids.
#define WIRE_LIST(name, member)                                        \
  do {                                                                 \
    if constexpr (Way::kWrites) {                                      \
      for (const auto& each : member) proto.add_##name(OnWire(each));  \
    } else {                                                           \
      for (const auto& each : proto.name()) member.emplace_back(each); \
    }                                                                  \
  } while (false)

// A message within this one.
#define WIRE_PART(name, member)                     \
  do {                                              \
    if constexpr (Way::kWrites) {                   \
      *proto.mutable_##name() = ToProto(member);    \
    } else {                                        \
      way.Take(FromProto(proto.name()), &(member)); \
    }                                               \
  } while (false)

#define WIRE_PARTS(name, member)                                                               \
  do {                                                                                         \
    if constexpr (Way::kWrites) {                                                              \
      for (const auto& each : member) *proto.add_##name() = ToProto(each);                     \
    } else {                                                                                   \
      for (const auto& each : proto.name()) way.Take(FromProto(each), &member.emplace_back()); \
    }                                                                                          \
  } while (false)

// What all messages about a job begin with.
#define WIRE_STAMP()                \
  do {                              \
    WIRE_FIELD(job_id, plain.job);  \
    WIRE_FIELD(epoch, plain.epoch); \
  } while (false)
