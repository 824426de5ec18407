#include "common/weights/weight_table.h"

#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/some_names.h"
#include "common/weights/stored_type.h"

namespace motley {
namespace {

// "model." of "model.layers."; what saves without the head leaves out.
std::string_view PrefixOf(const FamilyTraits& traits) { return traits.names.layers.substr(0, traits.names.layers.find('.') + 1); }

std::string HeadTensor() { return absl::StrCat(std::string(kHeadName), std::string(kWeightSuffix)); }

std::string FullName(const std::string& stored, const FamilyTraits& traits) {
  if (stored.starts_with(PrefixOf(traits)) || stored == HeadTensor()) return stored;
  return absl::StrCat(std::string(PrefixOf(traits)), stored);
}

// As transformers passes over them: constants that older versions stored.
bool IsConstant(const std::string& name, const FamilyTraits& traits) {
  if (!name.starts_with(traits.names.layers)) return false;
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq");
}

std::string ShapeText(const std::vector<int64_t>& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

// By full name what the files hold.
using Held = std::map<std::string, StoredAt>;

absl::StatusOr<Held> CollectHeld(const WeightsFolder& folder, const FamilyTraits& traits) {
  Held held;
  for (size_t file = 0; file < folder.files.size(); ++file) {
    for (const StoredTensor& tensor : folder.files[file].tensors) {
      std::string name = FullName(tensor.name, traits);
      if (IsConstant(name, traits)) continue;
      const auto [place, is_new] = held.try_emplace(std::move(name), StoredAt{file, tensor});
      if (is_new) continue;
      return absl::InvalidArgumentError(absl::StrCat(folder.path, " holds ", Quoted(tensor.name), " twice: in ",
                                                     folder.files[place->second.file].path, " and in ", folder.files[file].path));
    }
  }
  return held;
}

absl::Status CheckStored(const TensorSpec& spec, const WeightsFolder& folder, StoredAt* at) {
  const std::string where = absl::StrCat(folder.files[at->file].path, ": tensor ", Quoted(at->tensor.name));
  if (at->tensor.shape != spec.named_shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, " has shape ", ShapeText(at->tensor.shape), "; the model's has ", ShapeText(spec.named_shape())));
  }
  const std::optional<DType> dtype = DTypeOfStored(at->tensor.type);
  if (!dtype) {
    return absl::InvalidArgumentError(absl::StrCat(where, " is of type ", Echo(at->tensor.type),
                                                   ", which is not trained; give weights in BF16, F16, F32 or F64"));
  }
  at->dtype = *dtype;
  return absl::OkStatus();
}

absl::Status SayLeft(const WeightsFolder& folder, const Held& held, const std::vector<std::string>& missing) {
  std::vector<std::string> unknown;
  for (const auto& [name, at] : held) unknown.push_back(Echo(at.tensor.name));
  if (unknown.empty() && missing.empty()) return absl::OkStatus();
  std::string what = missing.empty() ? "" : absl::StrCat(" lacks ", SomeNames(missing));
  if (!unknown.empty())
    absl::StrAppend(&what, missing.empty() ? "" : ", and", " holds ", SomeNames(unknown), ", which the model has not");
  return absl::InvalidArgumentError(
      absl::StrCat(folder.path, what, "; give the folder of a whole model of the kind that its ", kModelConfigName, " says"));
}

}  // namespace

absl::StatusOr<WeightTable> MatchWeights(const WeightsFolder& folder, const ModelShape& model) {
  const FamilyTraits& traits = TraitsOf(model.family);
  absl::StatusOr<Held> held = CollectHeld(folder, traits);
  if (!held.ok()) return held.status();
  WeightTable table;
  table.layout = ParameterLayout(model);
  std::vector<std::string> missing;
  for (const UnitSpec& unit : table.layout) {
    std::vector<StoredAt>& tensors = table.tensors.emplace_back();
    for (const TensorSpec& spec : unit.tensors) {
      auto found = held->extract(spec.name);
      if (found.empty()) {
        missing.push_back(spec.name);
        continue;
      }
      if (absl::Status status = CheckStored(spec, folder, &found.mapped()); !status.ok()) return status;
      tensors.push_back(std::move(found.mapped()));
    }
  }
  if (model.tie_embeddings) {
    if (auto head = held->extract(HeadTensor()); !head.empty()) {
      TensorSpec spec = table.layout[0].tensors[0];  // the embedding, which comes first of its unit
      if (absl::Status status = CheckStored(spec, folder, &head.mapped()); !status.ok()) return status;
      table.tied_head = std::move(head.mapped());
    }
  }
  if (absl::Status left = SayLeft(folder, *held, missing); !left.ok()) return left;
  return table;
}

}  // namespace motley
