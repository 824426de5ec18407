// HuggingFace's config.json.
#include "common/model/model.h"
#include "common/model/parameters.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const absl::StatusOr<ModelShape> shape = ParseHfConfig(fuzz::Text(data, size), "config.json");
  const absl::StatusOr<HfModel> model = ParseHfShape(fuzz::Text(data, size), "config.json");
  fuzz::Require(shape.ok() ? model.ok() : !model.ok() || !model->notes.empty(),
                "what is trained and what is planned differ without a note");
  if (!shape.ok()) {
    // A line for each of some thirty keys, and of each value its first 200 bytes.
    fuzz::Require(shape.status().message().size() < 16000, "an error repeats what it was given");
    return 0;
  }
  fuzz::Require(model->shape == *shape, "a model is planned as another");
  const absl::StatusOr<ModelShape> again = ParseHfConfig(ToHfConfig(*shape), "written.json");
  fuzz::Require(again.ok() && *again == *shape, "a model that was written is read as another");
  return 0;
}
