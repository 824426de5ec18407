#include "coordinator/client/json.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace motley::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// JOB_STATE_RUNNING -> "running": what is left when the enumeration's own name is taken away.
std::string EnumName(const google::protobuf::EnumValueDescriptor* value) {
  std::string prefix;
  for (const char c : value->type()->name()) {
    if (absl::ascii_isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  return absl::AsciiStrToLower(absl::StripPrefix(value->name(), prefix + "_"));
}

// Fields whose zero or empty text means that it is not known, or that there is none.
constexpr std::string_view kNothingWhenZero[] = {"started_unix_ms",
                                                 "finished_unix_ms",
                                                 "registered_unix_ms",
                                                 "last_seen_unix_ms",
                                                 "member_since_unix_ms",
                                                 "certificate_until_unix_ms",
                                                 "measured_tokens_per_second",
                                                 "measured_flops_per_second",
                                                 "measured_model",
                                                 "measured_attention",
                                                 "declared_flops_per_second",
                                                 "host_memory_bytes",
                                                 "usable_memory_bytes",
                                                 "planned_host_memory_bytes",
                                                 "host_link_bytes_per_second",
                                                 "power_limit_watts",
                                                 "sm_clock_mhz",
                                                 "watts",
                                                 "predicted_step_seconds",
                                                 "newest_checkpoint",
                                                 "safe_checkpoint",
                                                 "why_not_nccl",
                                                 "job_id",
                                                 "node",
                                                 "device",
                                                 "training_tokens",
                                                 "error_code",
                                                 "owner",
                                                 "uid",
                                                 "connect_seconds",
                                                 "bytes_per_second",
                                                 "loss_scale",
                                                 "error"};

bool IsNothing(const FieldDescriptor* field, const Json& value) {
  const auto* const end = std::end(kNothingWhenZero);
  if (std::find(std::begin(kNothingWhenZero), end, std::string_view(field->name())) == end) return false;
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.is_number() && value == 0;
}

// "has_validation_loss" says of "validation_loss" whether it is known; JSON has null for that.
const FieldDescriptor* SwitchOf(const FieldDescriptor* field) {
  return field->containing_type()->FindFieldByName("has_" + field->name());
}
bool IsSwitch(const FieldDescriptor* field) {
  return absl::StartsWith(field->name(), "has_") && field->containing_type()->FindFieldByName(field->name().substr(4)) != nullptr;
}

Json Single(const Message& message, const FieldDescriptor* field) {
  const Reflection* r = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return r->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return r->GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return r->GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r->GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r->GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return r->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(r->GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return r->GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(r->GetMessage(message, field));
  }
  return nullptr;
}

Json Element(const Message& message, const FieldDescriptor* field, int i) {
  const Reflection* r = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return r->GetRepeatedInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return r->GetRepeatedInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return r->GetRepeatedUInt32(message, field, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return r->GetRepeatedUInt64(message, field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return r->GetRepeatedDouble(message, field, i);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r->GetRepeatedFloat(message, field, i);
    case FieldDescriptor::CPPTYPE_BOOL:
      return r->GetRepeatedBool(message, field, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(r->GetRepeatedEnum(message, field, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return r->GetRepeatedString(message, field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(r->GetRepeatedMessage(message, field, i));
  }
  return nullptr;
}

// People take an epoch for a pass over the data; the protocol's is the number of a job's plan.
std::string NameOf(const FieldDescriptor* field) { return field->name() == "epoch" ? "generation" : field->name(); }

std::string Text(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

}  // namespace

Json ToJson(const Message& message) {
  Json json = Json::object();
  const auto* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->is_repeated()) {
      Json list = Json::array();
      for (int j = 0; j < message.GetReflection()->FieldSize(message, field); ++j) list.push_back(Element(message, field, j));
      json[NameOf(field)] = std::move(list);
    } else if (IsSwitch(field)) {
      continue;
    } else if (field->has_presence() && !message.GetReflection()->HasField(message, field)) {
      // Of a choice only what was chosen is there.
      if (field->real_containing_oneof() == nullptr) json[NameOf(field)] = nullptr;
    } else {
      const FieldDescriptor* known = SwitchOf(field);
      Json value = Single(message, field);
      const bool nothing = IsNothing(field, value) || (known != nullptr && !message.GetReflection()->GetBool(message, known));
      json[NameOf(field)] = nothing ? Json() : std::move(value);
    }
  }
  return json;
}

void PrintDocument(std::ostream& out, const Json& json) { out << Text(json, 2) << "\n"; }
void PrintLine(std::ostream& out, const Json& json) { out << Text(json, -1) << std::endl; }

}  // namespace motley::client
