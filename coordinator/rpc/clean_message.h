// The last door before a message leaves for people.
#pragma once

#include <google/protobuf/message.h>

namespace motley::coordinator {

// Makes every text of the message, and of those within, CleanText (common/base/clean_text.h). Whoever reads a message with one
// wrong byte reads none of it, and of a stream nothing behind it; stores written by older versions may hold such bytes.
void CleanTexts(google::protobuf::Message& message);

}  // namespace motley::coordinator
