// A plan as text, and its words by themselves.
#include "planner/plan/plan.h"
#include "planner/plan/plan_words.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const std::string_view text = fuzz::Text(data, size);
  if (const auto word = planner::ReadWord(text); word.ok() && text.starts_with('"')) {
    const auto again = planner::ReadWord(planner::QuotedWord(*word));
    fuzz::Require(again.ok() && *again == *word, "a word that was written is read as another");
  }
  if (const auto devices = planner::ReadDevices(text.substr(0, 200)); devices.ok() && devices->size() < 1000) {
    planner::DevicesText(*devices);
  }
  (void)planner::ReadRuns(text.substr(0, 200));
  (void)planner::ReadLayers(text.substr(0, 200));
  (void)planner::ReadNumber(text);
  (void)planner::ReadInteger(text);
  planner::SplitWords(text);
  if (const auto plan = planner::ParsePlanText(text); plan.ok()) (void)planner::ToText(*plan, planner::TextPrecision::kExact);
  return 0;
}
