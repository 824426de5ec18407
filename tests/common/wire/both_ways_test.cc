// Every field of the session's messages is in its list: a message with a value in each comes back as it was.
#include "common/wire/both_ways.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/wire/rank.h"
#include "common/wire/session.h"

namespace motley {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// What has conversions of its own: assignments, and spans as differences.
bool IsByHand(const FieldDescriptor& field) {
  return field.message_type() != nullptr && (field.message_type()->name() == "RankAssignment" || field.name() == "spans" ||
                                             field.name() == "devices" || field.name() == "transports");
}

// Another value for each field, so that two that were mixed up differ.
class Filler {
 public:
  void Fill(Message* message) {
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message->GetDescriptor()->field(i);
      if (field->containing_oneof() == nullptr || field->has_presence()) FillField(message, field);
    }
  }
  void FillField(Message* message, const FieldDescriptor* field) {
    if (IsByHand(*field)) return;
    if (!field->is_repeated()) return FillOne(message, field);
    for (int i = 0; i < 2; ++i) AddOne(message, field);
  }

 private:
  void FillOne(Message* message, const FieldDescriptor* field) {
    const Reflection* reflection = message->GetReflection();
    ++next_;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return reflection->SetInt32(message, field, next_);
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection->SetInt64(message, field, next_);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection->SetDouble(message, field, next_ + 0.5);
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection->SetBool(message, field, true);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection->SetEnum(message, field, field->enum_type()->value(field->enum_type()->value_count() - 1));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection->SetString(message, field, std::to_string(next_));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Fill(reflection->MutableMessage(message, field));
      default:
        FAIL() << field->full_name() << " is of a type that the test does not know";
    }
  }
  void AddOne(Message* message, const FieldDescriptor* field) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Fill(message->GetReflection()->AddMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      message->GetReflection()->AddString(message, field, std::to_string(++next_));
    } else {
      FAIL() << field->full_name() << " is a list that the test does not know";
    }
  }
  int next_ = 0;
};

// Gives each kind of a message to `check`, filled.
template <typename Session>
void EachKind(const std::function<void(const std::string&, const Session&)>& check) {
  const auto* kinds = Session::descriptor()->FindOneofByName("message");
  for (int i = 0; i < kinds->field_count(); ++i) {
    Session message;
    Filler().FillField(&message, kinds->field(i));
    if (message.message_case() != Session::MESSAGE_NOT_SET) check(kinds->field(i)->name(), message);
  }
}

// What only clients are told of a step stays behind, and what is there twice comes from one of both.
void Settle(v1::StepReport* report) {
  v1::StepRecord* record = report->mutable_record();
  for (const char* name : {"tokens_per_second", "peak_memory_share", "predicted_step_seconds", "elapsed_seconds",
                           "remaining_seconds", "validation_perplexity", "host_memory_bytes", "planned_host_memory_bytes"}) {
    record->GetReflection()->ClearField(record, record->GetDescriptor()->FindFieldByName(name));
  }
  record->set_epoch(report->epoch());
  record->set_peak_memory_bytes(report->peak_memory_bytes());
}

TEST(BothWaysTest, EveryFieldOfACommandComesBack) {
  EachKind<v1::CoordinatorMessage>([](const std::string& kind, v1::CoordinatorMessage message) {
    if (kind == "welcome") return;
    const auto command = wire::FromProto(message);
    ASSERT_TRUE(command.ok() && command->has_value()) << kind << command.status();
    EXPECT_EQ(wire::ToProto(**command).DebugString(), message.DebugString()) << kind;
  });
}

TEST(BothWaysTest, EveryFieldOfAReportComesBack) {
  EachKind<v1::WorkerMessage>([](const std::string& kind, v1::WorkerMessage message) {
    if (kind == "hello") return;
    if (message.has_step_report()) Settle(message.mutable_step_report());
    if (message.has_trace_result()) message.mutable_trace_result()->mutable_spans();
    if (message.has_storage_check_result()) {
      message.mutable_storage_check_result()->set_data_bytes(message.storage_check_result().data().bytes());
      message.mutable_storage_check_result()->set_data_digest(message.storage_check_result().data().digest());
    }
    const auto report = wire::FromProto(message);
    ASSERT_TRUE(report.has_value()) << kind;
    EXPECT_EQ(wire::ToProto(*report).DebugString(), message.DebugString()) << kind;
  });
}

TEST(BothWaysTest, EveryFieldOfAHelloComesBack) {
  v1::Hello hello;
  Filler().Fill(&hello);
  const auto node = wire::FromProto(hello);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(wire::ToProto(*node).DebugString(), hello.DebugString());
}

TEST(BothWaysTest, EveryKindThatTheSocketHasIsTheSessions) {
  EachKind<v1::FromRank>([](const std::string& kind, v1::FromRank message) {
    if (message.has_step()) Settle(message.mutable_step());
    if (message.has_trace_result()) message.mutable_trace_result()->mutable_spans();
    const auto report = wire::FromProto(message);
    ASSERT_TRUE(report.has_value()) << kind;
    EXPECT_EQ(wire::ToProto(*report).DebugString(), message.DebugString()) << kind;
  });
  EachKind<v1::ToRank>([](const std::string& kind, v1::ToRank message) {
    if (kind == "profile") return;  // it needs an assignment
    const auto command = wire::FromProto(message);
    ASSERT_TRUE(command.ok()) << kind << command.status();
    EXPECT_EQ(wire::ToProto(*command).DebugString(), message.DebugString()) << kind;
  });
}

}  // namespace
}  // namespace motley
