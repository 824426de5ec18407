#include "coordinator/rpc/clean_message.h"

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "common/base/clean_text.h"

namespace motley::coordinator {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void CleanField(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
  const bool message_field = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!message_field && field->type() != FieldDescriptor::TYPE_STRING) return;
  if (!field->is_repeated()) {
    if (message_field) return CleanTexts(*reflection.MutableMessage(&message, field));
    return reflection.SetString(&message, field, CleanText(reflection.GetString(message, field)));
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    if (message_field) {
      CleanTexts(*reflection.MutableRepeatedMessage(&message, field, i));
    } else {
      reflection.SetRepeatedString(&message, field, i, CleanText(reflection.GetRepeatedString(message, field, i)));
    }
  }
}

}  // namespace

void CleanTexts(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> present;
  reflection.ListFields(message, &present);
  for (const FieldDescriptor* field : present) CleanField(message, reflection, field);
}

}  // namespace motley::coordinator
