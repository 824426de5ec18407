#include "common/checkpoint/model_card.h"

#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/parse_json.h"
#include "common/checkpoint/checkpoint.h"
#include "common/data/loss_figures.h"
#include "common/model/parameters.h"
#include "common/weights/base_model.h"
#include "common/weights/stored_type.h"

namespace motley {
namespace {

constexpr std::string_view kFence = "---";
constexpr std::string_view kLicenseKeys[] = {"license:", "license_name:", "license_link:"};

// A string of JSON is one of YAML.
// In a cell of a table: neither the end of one nor the begin of a tag.
std::string Cell(const std::string& text) { return absl::StrReplaceAll(CleanLine(text), {{"|", "\\|"}, {"<", "&lt;"}}); }

// Whether a value of YAML is a plain word in its line: no list, no text of several lines.
bool IsPlain(std::string_view value) {
  while (value.starts_with(' ')) value.remove_prefix(1);
  return !value.empty() && absl::ascii_isalnum(static_cast<unsigned char>(value[0])) &&
         value.find(": ") == std::string_view::npos;
}

// The lines of a card's YAML that name its license, as they are.
std::vector<std::string> LicenseLines(const std::string& card) {
  std::vector<std::string> found, lines = absl::StrSplit(card, '\n');
  for (std::string& line : lines) line = CleanLine(line.substr(0, line.find('\r')));
  if (lines[0] != kFence) return found;
  for (size_t i = 1; i < lines.size() && lines[i] != kFence; ++i) {
    for (const std::string_view key : kLicenseKeys) {
      if (lines[i].starts_with(key) && IsPlain(std::string_view(lines[i]).substr(key.size()))) found.push_back(lines[i]);
    }
  }
  return found;
}

using Row = std::pair<std::string, std::string>;

std::string DataText(const std::string& name, const std::string& digest) {
  if (name.empty()) return digest.empty() ? "" : absl::StrCat("digest ", digest);
  return digest.empty() ? Cell(name) : absl::StrCat(Cell(name), ", digest ", digest);
}

std::string TypesText(const CheckpointManifest& manifest, const BaseModel& base) {
  std::set<std::string> types;
  for (const BaseTensor& tensor : base.tensors) types.insert(std::string(StoredNameOf(tensor.dtype)));
  if (types.empty()) types.insert(std::string(StoredNameOf(manifest.dtype)));
  return absl::StrCat(absl::StrJoin(types, ", "), "; trained in ", std::string(DTypeName(manifest.dtype)));
}

// The newest of each kind up to the checkpoint's step.
void AddLosses(const CheckpointManifest& manifest, const CardFacts& facts, std::vector<Row>* rows) {
  std::string training, validation;
  for (const auto& [step, losses] : facts.losses) {
    if (step > manifest.step) break;
    const std::string at = absl::StrCat(" at step ", step);
    if (std::isfinite(losses.training)) training = absl::StrCat(losses.training, at);
    if (!losses.validation || !std::isfinite(*losses.validation)) continue;
    validation = absl::StrCat(*losses.validation, " (perplexity ", Perplexity(*losses.validation), ")", at);
  }
  rows->emplace_back("training loss", training);
  rows->emplace_back("validation loss", validation);
}

std::vector<Row> RowsOf(const CheckpointManifest& manifest, const BaseModel& base, const CardFacts& facts) {
  const int64_t step_tokens = facts.seq_len * facts.global_batch_size;
  const std::string uid = manifest.job_uid.empty() ? "" : absl::StrCat(", uid ", manifest.job_uid.value());
  std::vector<Row> rows = {
      {"job", absl::StrCat(Cell(manifest.job), uid)},
      {"exported", facts.date},
      {"base model", Cell(facts.base_model)},
      {"family",
       absl::StrCat(std::string(TraitsOf(manifest.model.family).model_type), ", ", NumParameters(manifest.model), " parameters")},
      {"type of the weights", TypesText(manifest, base)},
      {"data", DataText(facts.data, manifest.data_digest)},
      {"validation data", Cell(facts.validation_data)},
      {"steps", absl::StrCat(manifest.step)},
  };
  if (step_tokens > 0) {
    rows.emplace_back("tokens trained", absl::StrCat(manifest.step * step_tokens, " (a step has ", facts.global_batch_size,
                                                     " samples of ", facts.seq_len, ")"));
  }
  AddLosses(manifest, facts, &rows);
  if (!base.tensors.empty()) rows.emplace_back("license", "as the base's");
  std::erase_if(rows, [](const Row& row) { return row.second.empty(); });
  return rows;
}

}  // namespace

std::string ModelCard(const CheckpointManifest& manifest, const BaseModel& base, const CardFacts& facts) {
  const std::string* const base_card = base.tensors.empty() ? nullptr : base.Find(kCardName);
  std::string card = absl::StrCat(std::string(kFence), "\n");
  if (!facts.base_model.empty()) absl::StrAppend(&card, "base_model: ", JsonText(facts.base_model), "\n");
  if (base_card != nullptr) {
    for (const std::string& line : LicenseLines(*base_card)) absl::StrAppend(&card, line, "\n");
  }
  absl::StrAppend(&card, "library_name: transformers\npipeline_tag: text-generation\ntags:\n- motley\n- ",
                  std::string(TraitsOf(manifest.model.family).model_type), "\n", std::string(kFence), "\n\n# ",
                  Cell(facts.job_name.empty() ? manifest.job : facts.job_name), "\n\nMade by Motley.\n\n| | |\n|---|---|\n");
  for (const auto& [name, value] : RowsOf(manifest, base, facts)) absl::StrAppend(&card, "| ", name, " | ", value, " |\n");
  if (base_card != nullptr) {
    absl::StrAppend(&card, "\nThe base's own card is [", kBaseCardName, "](", kBaseCardName, ").\n");
  }
  return card;
}

}  // namespace motley
