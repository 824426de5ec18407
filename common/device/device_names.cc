// What a card is called: by people, by its maker, by the driver.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest.h"
#include "common/device/device_table.h"

namespace motley {
namespace {

constexpr size_t kTellingBeginning = 4;  // letters; fewer begin too many names
constexpr int64_t kMostSaidGib = 1024;
constexpr size_t kTellingLetters = 3;  // of a family; H100, B100 and A100 are no misspellings of each other

// Other names, normalised: as people say them, and as the makers' drivers name the boards.
constexpr std::array<std::pair<std::string_view, std::string_view>, 43> kOtherNames = {{
    {"a100", "a10040gb"},
    {"a100sxm440gb", "a10040gb"},
    {"a100sxm480gb", "a10080gb"},
    {"a10080gbpcie", "a100pcie80gb"},
    {"a80080gb", "a800"},
    {"a800sxm480gb", "a800"},
    {"a80080gbpcie", "a800pcie"},
    {"a100sxm40gb", "a10040gb"},
    {"a100sxm80gb", "a10080gb"},
    {"gh200480gb", "gh200"},  // the host's memory
    {"h100", "h100sxm"},
    {"h10080gbhbm3", "h100sxm"},
    {"h100sxm5", "h100sxm"},
    {"h200sxm", "h200"},
    {"mi250", "mi250gcd"},
    {"mi250xmi250", "mi250gcd"},  // the driver has one name for both
    {"mi300xoam", "mi300x"},
    {"m4012gb", "m40"},
    {"p100pcie12gb", "p100"},
    {"rtx20606gb", "rtx2060"},
    {"rtx306012gb", "rtx3060"},
    {"rtx308010gb", "rtx3080"},
    {"rtx30708gb", "rtx3070"},
    {"rtx4060ti8gb", "rtx4060ti"},
    {"rtx5060ti8gb", "rtx5060ti"},
    {"rtx8000", "quadrortx8000"},
    {"rtxa2000", "a2000"},
    {"rtxa200012gb", "a200012gb"},
    {"rtxa20006gb", "a2000"},
    {"rtxa4000", "a4000"},
    {"rtxa4500", "a4500"},
    {"rtxa5000", "a5000"},
    {"rtxa6000", "a6000"},
    {"rtxpro6000blackwell", "rtxpro6000"},
    {"rtxpro6000blackwellmaxqworkstationedition", "rtxpro6000maxq"},
    {"rtxpro6000blackwellserveredition", "rtxpro6000server"},
    {"rtxpro6000blackwellworkstationedition", "rtxpro6000"},
    {"t10004gb", "t1000"},
    {"v100", "v10016gb"},
    {"v100s", "v100s32gb"},
    {"v100spcie32gb", "v100s32gb"},
    {"v100sxm216gb", "v10016gb"},
    {"v100sxm232gb", "v10032gb"},
}};

// Cards that the table lacks and whose names are near to one of it, normalised; behind each the row with its family and memory,
// where there is one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kLackingCards = {{
    {"a1000", ""},
    {"rtxa1000", ""},
    {"a400", ""},
    {"rtxa400", ""},
    {"a4000ada", "rtx4000ada"},
    {"a4500ada", "rtx4500ada"},
    {"a5000ada", "rtx5000ada"},
    {"a5500", "a5000"},
    {"rtxa5500", "a5000"},
    {"a6000ada", "rtx6000ada"},
    {"a8000", ""},
    {"mi250x", "mi250gcd"},
    {"p1000", ""},
    {"p400", ""},
    {"p600", ""},
    {"rtx4000sffada", "rtx4000ada"},
    {"t100", ""},
    {"t400", ""},
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

// "24 GB" behind a name: a card's memory, said beside it.
struct NameWithMemory {
  std::string_view card;
  int64_t gib = 0;
};

// A driver shows a few per cent less than the box says; boards of one name differ by more.
bool IsOfMemory(const GpuSpec& gpu, int64_t gib) {
  const double part = static_cast<double>(gpu.memory_bytes) / static_cast<double>(gib << 30);
  return part > 0.9 && part < 1.1;
}

// Nothing, where the name does not end so: "3090 24 GB", "A6000-48GB", "RTX 3090 (24 GiB)".
std::optional<NameWithMemory> SplitMemory(std::string_view name) {
  const auto drop = [&name](auto is_of) {
    size_t end = name.size();
    while (end > 0 && is_of(static_cast<unsigned char>(name[end - 1]))) --end;
    const std::string_view dropped = name.substr(end);
    name = name.substr(0, end);
    return dropped;
  };
  const auto is_mark = [](unsigned char c) { return std::isalnum(c) == 0; };
  drop(is_mark);
  const std::string unit = Normalise(drop([](unsigned char c) { return std::isalpha(c) != 0; }));
  drop(is_mark);
  const std::string_view digits = drop([](unsigned char c) { return std::isdigit(c) != 0; });
  NameWithMemory split;
  const bool apart = !name.empty() && !drop(is_mark).empty();
  if (!apart || (unit != "gb" && unit != "gib" && unit != "g") || !absl::SimpleAtoi(std::string(digits), &split.gib) ||
      split.gib < 1 || split.gib > kMostSaidGib)
    return std::nullopt;
  split.card = name;
  return split;
}

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "rtx", "3060", "ti". An O behind a digit is a zero.
std::vector<std::string> PartsOf(const std::string& name) {
  std::vector<std::string> parts;
  for (const char c : name) {
    const bool follows = !parts.empty() && IsDigit(parts.back().back());
    const char letter = c == 'o' && follows ? '0' : c;
    if (parts.empty() || IsDigit(letter) != follows) parts.emplace_back();
    parts.back() += letter;
  }
  return parts;
}

// A digit that was typed twice, or once too little: "600" for "6000". Other numbers are other cards.
bool IsStutter(const std::string& a, const std::string& b) {
  const std::string &longer = a.size() > b.size() ? a : b, &shorter = a.size() > b.size() ? b : a;
  if (longer.size() != shorter.size() + 1) return false;
  const auto at = static_cast<size_t>(std::mismatch(shorter.begin(), shorter.end(), longer.begin()).first - shorter.begin());
  return at > 0 && longer[at] == longer[at - 1] && longer.substr(at + 1) == shorter.substr(at);
}

bool IsMisspelling(const std::string& a, const std::string& b) {
  if (IsDigit(a[0]) != IsDigit(b[0])) return false;
  if (IsDigit(a[0])) return IsStutter(a, b);
  // The last letter before a number is a generation: Quadro M6000 and P6000.
  return std::min(a.size(), b.size()) >= kTellingLetters && a.back() == b.back() && NearestWord(a, {b}) == b;
}

// The same name but for one part of it that is misspelt; none, where several are.
const GpuSpec* MisspeltGpu(const std::string& wanted) {
  const std::vector<std::string> parts = PartsOf(wanted);
  const GpuSpec* found = nullptr;
  for (const SpokenName& name : SpokenNames()) {
    const std::vector<std::string> known = PartsOf(name.text);
    if (known.size() != parts.size()) continue;
    size_t other = 0;
    bool near = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] == known[i]) continue;
      ++other;
      near = near && IsMisspelling(parts[i], known[i]);
    }
    if (other > 1 || !near || name.gpu == found) continue;
    if (found != nullptr) return nullptr;
    found = name.gpu;
  }
  return found;
}

// The shortest name that goes on after what is wanted ("RTX 5000" for the one with "Ada"), whose number is whole.
const GpuSpec* LongerGpu(const std::string& wanted) {
  const bool telling = wanted.size() >= kTellingBeginning && !IsDigit(wanted[0]) &&
                       std::any_of(wanted.begin(), wanted.end(), [](char c) { return IsDigit(c); });
  if (!telling) return nullptr;
  const SpokenName* longer = nullptr;
  for (const SpokenName& name : SpokenNames()) {
    if (!name.text.starts_with(wanted) || name.text.size() == wanted.size()) continue;
    if (IsDigit(wanted.back()) && IsDigit(name.text[wanted.size()])) continue;
    if (longer == nullptr || name.text.size() < longer->text.size()) longer = &name;
  }
  return longer == nullptr ? nullptr : longer->gpu;
}

// Only of the same family and memory: a card that is another is planned as another, and nobody notices.
const GpuSpec* NearestGpu(const std::string& wanted) {
  if (wanted.empty()) return nullptr;
  for (const auto& [lacking, row] : kLackingCards) {
    if (lacking == wanted) return row.empty() ? nullptr : Named(std::string(row));
  }
  const GpuSpec* longer = LongerGpu(wanted);
  return longer != nullptr ? longer : MisspeltGpu(wanted);
}

}  // namespace

std::string_view NearestGpuName(std::string_view name) {
  const GpuSpec* nearest = NearestGpu(Normalise(name));
  return nearest == nullptr ? std::string_view() : nearest->name;
}

absl::StatusOr<GpuSpec> FindGpu(std::string_view name) {
  const std::string wanted = Normalise(name);
  if (const GpuSpec* gpu = Named(wanted)) return *gpu;
  if (const std::optional<NameWithMemory> split = SplitMemory(name)) {
    const GpuSpec* gpu = Named(Normalise(split->card));
    if (gpu != nullptr && IsOfMemory(*gpu, split->gib)) return *gpu;
    if (gpu != nullptr) {
      return absl::NotFoundError(absl::StrCat("GPU model '", std::string(name), "': the device table's ", std::string(gpu->name),
                                              " has ", gpu->memory_bytes >> 30, " GiB; `motley cards` lists all"));
    }
  }
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
