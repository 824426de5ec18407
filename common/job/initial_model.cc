#include "common/job/initial_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/parameters.h"
#include "common/weights/weights_folder.h"

namespace motley {

absl::StatusOr<InitialModel> ReadInitialModel(const std::string& initial) {
  MOTLEY_ASSIGN_OR_RETURN(const std::string folder, FindWeightsFolder(initial, OpenAnywhere));
  if (folder.empty()) return InitialModel();
  absl::StatusOr<std::string> text = ReadModelConfig(folder, OpenAnywhere);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return InitialModel{absl::StrCat(folder, "/", kModelConfigName), *std::move(text)};
}

std::string WhyOtherModel(const InitialModel& initial, const ModelShape& said, int64_t seq_len) {
  const auto held = ParseHfConfig(initial.config_json, initial.config, seq_len);
  if (!held.ok()) return std::string(held.status().message());
  if (SameModel(*held, said, seq_len)) return "";
  return absl::StrCat(initial.config, " is of another model, with ", ModelWords(*held), ", than the job's [model], with ",
                      ModelWords(said), "; leave out [model], which is the folder's then");
}

}  // namespace motley
