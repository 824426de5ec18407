// The list of what an input is made of. Its id is put right first, else no altered list would ever get behind it.
#include "common/base/sha256.h"
#include "common/inputs/input_list.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const std::string text(fuzz::Text(data, size));
  ParseInput(text);
  const absl::StatusOr<InputList> list = InputListFromJson(text, Sha256Hex(text));
  if (!list.ok()) return 0;
  for (const CheckpointFile& file : list->files) {
    const std::string name = "/" + file.name + "/";
    fuzz::Require(name.find("/../") == std::string::npos && name.find("//") == std::string::npos, "a name leads elsewhere");
  }
  const std::string again = InputListToJson(*list);
  fuzz::Require(InputListFromJson(again, Sha256Hex(again)).ok(), "a list that was written is not read");
  return 0;
}
