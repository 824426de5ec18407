// What a page is told, as JSON: messages of the API by name, and lists that grow. docs/inside/page.md
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
namespace motley::coordinator {

// A message as pages read it: the field names of the .proto files, without fields that have their default, on one line.
std::string PageJson(const google::protobuf::Message& message);
// A text as a JSON string.
std::string PageJson(absl::string_view text);

// The row "plan".
std::string PagePlanJson(int64_t epoch, absl::string_view explanation, absl::string_view plan_json);

// Everything in it is JSON already.
struct PageDocument {
  int64_t from = 0, cursor = 0;             // what is new behind `from`, up to `cursor`; from 0: everything
  std::map<std::string, std::string> rows;  // by name: "job", "node:a"
  std::vector<std::string> gone;            // names of rows that are not there any more
  std::string history;                      // v1::JobHistory; with `from` 0 alone
  // "steps" (v1::StepRecord), "events" (v1::Event), "logs" (v1::LogLine); the oldest first.
  std::map<std::string, std::vector<absl::string_view>> lists;
};
// `life` tells coordinators apart, `page` versions of the page.
std::string PrintPage(const PageDocument& document, absl::string_view life, absl::string_view page);

}  // namespace motley::coordinator
