// What a card is called: by people, by its maker, by the driver.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/device/device_table.h"

namespace motley {
namespace {

constexpr size_t kTellingBeginning = 4;  // letters; fewer begin too many names

// Other names, normalised: as people say them, and as the makers' drivers name the boards.
constexpr std::array<std::pair<std::string_view, std::string_view>, 28> kOtherNames = {{
    {"a100", "a10040gb"},
    {"a100sxm440gb", "a10040gb"},
    {"a100sxm480gb", "a10080gb"},
    {"a10080gbpcie", "a100pcie80gb"},
    {"a80080gb", "a800"},
    {"a800sxm480gb", "a800"},
    {"a80080gbpcie", "a800pcie"},
    {"gh200480gb", "gh200"},  // the host's memory
    {"h100", "h100sxm"},
    {"h10080gbhbm3", "h100sxm"},
    {"mi250", "mi250gcd"},
    {"mi250xmi250", "mi250gcd"},  // the driver has one name for both
    {"mi300xoam", "mi300x"},
    {"p100pcie12gb", "p100"},
    {"rtx306012gb", "rtx3060"},
    {"rtx308010gb", "rtx3080"},
    {"rtx8000", "quadrortx8000"},
    {"rtxa4000", "a4000"},
    {"rtxa4500", "a4500"},
    {"rtxa5000", "a5000"},
    {"rtxa6000", "a6000"},
    {"rtxpro6000blackwell", "rtxpro6000"},
    {"rtxpro6000blackwellworkstationedition", "rtxpro6000"},
    {"v100", "v10016gb"},
    {"v100s", "v100s32gb"},
    {"v100spcie32gb", "v100s32gb"},
    {"v100sxm216gb", "v10016gb"},
    {"v100sxm232gb", "v10032gb"},
}};

std::string Normalise(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const std::string_view maker : {"nvidia", "tesla", "geforce", "amd", "instinct"}) {
    if (out.starts_with(maker)) out.erase(0, maker.size());
  }
  // "RTX 6000 Ada Generation".
  constexpr std::string_view kEnding = "generation";
  if (out.ends_with(kEnding)) out.resize(out.size() - kEnding.size());
  return out;
}

struct SpokenName {
  std::string text;
  const GpuSpec* gpu;
};

std::vector<SpokenName> AllSpokenNames() {
  std::vector<SpokenName> names;
  for (const GpuSpec& gpu : GpuTable()) {
    const auto add = [&](const std::string& text) {
      names.push_back({text, &gpu});
      // "4090" for "RTX-4090", as people say it.
      if (text.starts_with("rtx") || text.starts_with("gtx")) names.push_back({text.substr(3), &gpu});
    };
    const std::string own = Normalise(gpu.name);
    add(own);
    for (const auto& [other, ours] : kOtherNames) {
      if (ours == own) add(std::string(other));
    }
  }
  return names;
}

const std::vector<SpokenName>& SpokenNames() {
  static const std::vector<SpokenName> names = AllSpokenNames();
  return names;
}

const GpuSpec* Named(const std::string& normalised) {
  const auto& names = SpokenNames();
  const auto found = std::find_if(names.begin(), names.end(), [&](const SpokenName& name) { return name.text == normalised; });
  return found == names.end() ? nullptr : found->gpu;
}

// The card whose name goes on after what is wanted ("RTX 4070"), the shortest of them; else the one with the fewest edits.
const GpuSpec* NearestGpu(const std::string& wanted) {
  const SpokenName* longer = nullptr;
  std::vector<std::string> texts;
  for (const SpokenName& name : SpokenNames()) {
    texts.push_back(name.text);
    if (!name.text.starts_with(wanted)) continue;
    if (longer == nullptr || name.text.size() < longer->text.size()) longer = &name;
  }
  if (longer != nullptr && wanted.size() >= kTellingBeginning) return longer->gpu;
  return Named(NearestWord(wanted, texts));
}

}  // namespace

std::string_view NearestGpuName(std::string_view name) {
  const GpuSpec* nearest = NearestGpu(Normalise(name));
  return nearest == nullptr ? std::string_view() : nearest->name;
}

absl::StatusOr<GpuSpec> FindGpu(std::string_view name) {
  const std::string wanted = Normalise(name);
  if (const GpuSpec* gpu = Named(wanted)) return *gpu;
  const std::string nearest(NearestGpuName(name));
  const std::string wrong = absl::StrCat("GPU model '", std::string(name), "' is not in the device table");
  if (!nearest.empty()) {
    return absl::NotFoundError(absl::StrCat(wrong, "; did you mean '", nearest, "'? `motley cards` lists all"));
  }
  std::vector<std::string> known;
  for (const GpuSpec& gpu : GpuTable()) known.emplace_back(gpu.name);
  return absl::NotFoundError(absl::StrCat(wrong, "; known: ", absl::StrJoin(known, ", ")));
}

}  // namespace motley
