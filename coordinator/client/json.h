// Protocol messages as JSON for `-o json` (docs/use/json-output.md): the field names of the .proto files but "generation" for
// "epoch", enumerations in lower case without their prefix, whole numbers as numbers, null for what is not known.
#pragma once

#include <google/protobuf/message.h>

#include <ostream>
#include <string>

#include "nlohmann/json.hpp"

namespace motley::client {

using Json = nlohmann::ordered_json;

// Every field is there, but of a oneof the one that is set.
Json ToJson(const google::protobuf::Message& message);
// Indented, for a whole answer; on one line, for one of a stream. Bytes that are not UTF-8 are replaced.
void PrintDocument(std::ostream& out, const Json& json);
void PrintLine(std::ostream& out, const Json& json);

}  // namespace motley::client
