// HuggingFace's config.json.
#include "common/model.h"
#include "common/parameters.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const absl::StatusOr<ModelShape> shape = ParseHfConfig(fuzz::Text(data, size), "config.json");
  if (!shape.ok()) {
    fuzz::Require(shape.status().message().size() < 2000, "an error repeats what it was given");
    return 0;
  }
  const absl::StatusOr<ModelShape> again = ParseHfConfig(ToHfConfig(*shape), "written.json");
  fuzz::Require(again.ok() && *again == *shape, "a model that was written is read as another");
  return 0;
}
