#include "coordinator/page/web/page_document.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace motley::coordinator {
std::string PageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  // Texts were cleaned (rpc/clean_message.h); what cannot be printed all the same is shown as nothing.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return json;
}

std::string PageJson(absl::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string PagePlanJson(int64_t epoch, absl::string_view explanation, absl::string_view plan_json) {
  return absl::StrCat("{\"epoch\":", epoch, ",\"explanation\":", PageJson(explanation), ",\"plan\":", plan_json, "}");
}

std::string PrintPage(const PageDocument& document, absl::string_view life, absl::string_view page) {
  std::string out =
      absl::StrCat("{\"life\":\"", life, "\",\"page\":\"", page, "\",\"from\":", document.from, ",\"cursor\":", document.cursor);
  const auto row = [](std::string* to, const auto& entry) { absl::StrAppend(to, PageJson(entry.first), ":", entry.second); };
  if (!document.rows.empty()) absl::StrAppend(&out, ",\"rows\":{", absl::StrJoin(document.rows, ",", row), "}");
  const auto name = [](std::string* to, const std::string& entry) { absl::StrAppend(to, PageJson(entry)); };
  if (!document.gone.empty()) absl::StrAppend(&out, ",\"gone\":[", absl::StrJoin(document.gone, ",", name), "]");
  if (!document.history.empty()) absl::StrAppend(&out, ",\"history\":", document.history);
  for (const auto& [list, entries] : document.lists) {
    if (!entries.empty()) absl::StrAppend(&out, ",", PageJson(list), ":[", absl::StrJoin(entries, ","), "]");
  }
  absl::StrAppend(&out, "}");
  return out;
}

}  // namespace motley::coordinator
