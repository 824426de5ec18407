// A rank's program as text.
#include "common/program/program.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const absl::StatusOr<Program> program = ParseProgram(fuzz::Text(data, size));
  if (!program.ok()) return 0;
  const std::string text = ToText(*program);
  const absl::StatusOr<Program> again = ParseProgram(text);
  fuzz::Require(again.ok(), "a program that was written is not read");
  fuzz::Require(ToText(*again) == text, "a program that was read again is another");
  (void)Validate(*program);
  return 0;
}
