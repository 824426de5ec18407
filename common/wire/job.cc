#include "common/wire/job.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "common/job/job_fields.h"

namespace motley::wire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string Owned(std::string_view text) { return std::string(text); }

// Names in the table and in the .proto file are the same; a test walks both, so the lookups here cannot miss.
const FieldDescriptor* Find(const Message& message, std::string_view name) {
  return message.GetDescriptor()->FindFieldByName(Owned(name));
}

void Write(const JobField& field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  const FieldDescriptor* descriptor = Find(*message, field.key);
  if (const auto* text = std::get_if<std::string*>(&field.value)) {
    reflection->SetString(message, descriptor, **text);
  } else if (const auto* integer = std::get_if<int64_t*>(&field.value)) {
    reflection->SetInt64(message, descriptor, **integer);
  } else if (const auto* flag = std::get_if<bool*>(&field.value)) {
    reflection->SetBool(message, descriptor, **flag);
  } else {
    reflection->SetDouble(message, descriptor, *std::get<double*>(field.value));
  }
}

void Read(const JobField& field, const Message& message) {
  const Reflection* reflection = message.GetReflection();
  const FieldDescriptor* descriptor = Find(message, field.key);
  // Without presence an empty text is an absent one.
  if (!reflection->HasField(message, descriptor)) return;
  if (std::holds_alternative<std::string*>(field.value)) {
    field.SetText(reflection->GetString(message, descriptor));
  } else if (const auto* integer = std::get_if<int64_t*>(&field.value)) {
    **integer = reflection->GetInt64(message, descriptor);
  } else if (const auto* flag = std::get_if<bool*>(&field.value)) {
    **flag = reflection->GetBool(message, descriptor);
  } else {
    *std::get<double*>(field.value) = reflection->GetDouble(message, descriptor);
  }
}

}  // namespace

v1::JobSpec ToProto(const JobConfig& config) {
  v1::JobSpec spec;
  JobConfig copy = config;  // the table points into a mutable value
  for (const JobField& field : JobFields(copy)) {
    Message* target = &spec;
    if (!field.section.empty()) target = spec.GetReflection()->MutableMessage(&spec, Find(spec, field.section));
    Write(field, target);
  }
  return spec;
}

JobConfig FromProto(const v1::JobSpec& spec, JobConfig config) {
  for (const JobField& field : JobFields(config)) {
    const Message& source = field.section.empty() ? spec : spec.GetReflection()->GetMessage(spec, Find(spec, field.section));
    Read(field, source);
  }
  return config;
}

}  // namespace motley::wire
