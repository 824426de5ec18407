// Words of the plan's text form that writer and reader share: names, numbers, lists of devices, runs of microbatches, layers.
// docs/use/plan-language.md has the grammar. Readers' errors say what was expected; the caller adds the line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "planner/plan/plan.h"

namespace motley::planner {

// A name as one word: quoted like a JSON string when it has spaces or other signs of the grammar, or is empty.
std::string QuotedWord(const std::string& name);
// `number` with three decimals, or in the shortest form that reads back as the same double.
std::string NumberText(double number, TextPrecision precision);
// "n1/gpu0..7,n2/gpu0": consecutive numbers at the end of a name are a range.
std::string DevicesText(const std::vector<DeviceId>& devices);
// "11 = 2x4+3": runs of equal microbatches. "0": none.
std::string BatchText(const std::vector<int64_t>& microbatches);
// "0-5,12-17"; "0-31/8" is four ranges of eight layers.
std::string LayersText(const std::vector<LayerRange>& ministages);

// Words of a line: separated by spaces; quotes keep spaces and stay for ReadWord.
std::vector<std::string_view> SplitWords(std::string_view line);
absl::StatusOr<std::string> ReadWord(std::string_view word);
absl::StatusOr<double> ReadNumber(std::string_view word);
absl::StatusOr<int64_t> ReadInteger(std::string_view word);
absl::StatusOr<std::vector<DeviceId>> ReadDevices(std::string_view word);
absl::StatusOr<std::vector<int64_t>> ReadRuns(std::string_view word);  // "2x4+3"
absl::StatusOr<std::vector<LayerRange>> ReadLayers(std::string_view word);

}  // namespace motley::planner
