// Step records as text: JSON Lines and CSV, one line a step, the same columns in both.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "worker/records/step_format.h"

namespace motley::worker {
namespace {

// The shortest text that reads back as the same number; `absent` for a value that the record has not.
std::string NumberText(const StepColumn& column, const StepRecord& record, const char* absent) {
  const std::optional<double> value = column.value(record);
  if (!value) return absent;
  return column.integer ? absl::StrCat(static_cast<int64_t>(*value)) : nlohmann::json(*value).dump();
}

// JSON has null for what is not finite, too; in CSV it has the words that readers of numbers know.
std::string CsvText(const StepColumn& column, const StepRecord& record) {
  const std::optional<double> value = column.value(record);
  return value && !std::isfinite(*value) ? absl::StrCat(*value) : NumberText(column, record, "");
}

std::string JsonLine(const StepRecord& record) {
  return absl::StrCat("{",
                      absl::StrJoin(StepColumns(), ", ",
                                    [&](std::string* out, const StepColumn& column) {
                                      absl::StrAppend(out, "\"", std::string(column.key),
                                                      "\": ", NumberText(column, record, "null"));
                                    }),
                      "}\n");
}

std::string CsvHead(int64_t, double) {
  return absl::StrJoin(StepColumns(), ",", [](std::string* out, const StepColumn& column) { out->append(column.key); }) + "\n";
}

std::string CsvLine(const StepRecord& record) {
  return absl::StrJoin(StepColumns(), ",",
                       [&](std::string* out, const StepColumn& column) { out->append(CsvText(column, record)); }) +
         "\n";
}

std::string FileName(Epoch epoch, std::string_view extension) {
  return absl::StrFormat("generation-%08d.%s", epoch.value(), std::string(extension));
}

}  // namespace

const StepFormat kJsonLinesFormat = {"steps", [](Epoch epoch) { return FileName(epoch, "jsonl"); },
                                     [](int64_t, double) { return std::string(); }, JsonLine};
const StepFormat kCsvFormat = {"steps", [](Epoch epoch) { return FileName(epoch, "csv"); }, CsvHead, CsvLine};

}  // namespace motley::worker
