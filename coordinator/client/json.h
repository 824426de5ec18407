// Protocol messages as JSON for `-o json`: the field names of the .proto files, whole numbers as numbers, defaults included.
#pragma once

#include <google/protobuf/message.h>

#include <ostream>
#include <string>

#include "nlohmann/json.hpp"

namespace motley::client {

using Json = nlohmann::ordered_json;

// Fields with presence (messages, optional fields, oneofs) only when set.
Json ToJson(const google::protobuf::Message& message);
// Indented, for a whole answer; on one line, for one of a stream. Bytes that are not UTF-8 are replaced.
void PrintDocument(std::ostream& out, const Json& json);
void PrintLine(std::ostream& out, const Json& json);

}  // namespace motley::client
