#include "worker/daemon/nvidia_cards.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/files.h"

namespace motley::worker {
namespace {

constexpr int64_t kLargestBytes = 64 << 10;
constexpr size_t kMostHolders = 4;  // in a sentence
constexpr char kUnnamed[] = "a card without a name";

// The value behind "Model:", say; empty where there is none.
std::string ValueOf(const std::string& text, const std::string& key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, key)) return Echo(std::string(absl::StripAsciiWhitespace(line.substr(key.size()))));
  }
  return "";
}

// The first word that is a version: what stands before it differs between the two kinds of kernel module.
std::string DriverVersion(const std::string& line) {
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(word, '.');
    int number = 0;
    const auto is_number = [&number](absl::string_view part) { return absl::SimpleAtoi(part, &number); };
    if (parts.size() >= 2 && std::all_of(parts.begin(), parts.end(), is_number)) return std::string(word);
  }
  return "";
}

std::string FolderOf(const char* variable, const char* otherwise) {
  const char* folder = std::getenv(variable);
  return folder != nullptr && *folder != '\0' ? folder : otherwise;
}

std::string TextOf(const std::string& path) { return ReadSmallFile(path, kLargestBytes).value_or(""); }

std::string Uncorrected(const MemoryErrors& errors) {
  if (errors.uncorrected == 0) return "";
  return absl::StrCat("its memory had ", Count(errors.uncorrected, "error"),
                      " since the driver was loaded that ECC could not correct");
}

}  // namespace

std::string NvidiaFolder() { return FolderOf("MOTLEY_NVIDIA_PROC", "/proc/driver/nvidia"); }
std::string PciFolder() { return FolderOf("MOTLEY_PCI_DEVICES", "/sys/bus/pci/devices"); }

int CountCardsOnBus(const std::string& folder) {
  int count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator device(folder, error), end; !error && device != end; device.increment(error)) {
    count += absl::StartsWith(TextOf(device->path() / "vendor"), "0x10de") &&  // NVIDIA
             absl::StartsWith(TextOf(device->path() / "class"), "0x03");       // display controllers
  }
  return count;
}

NvidiaCards FindNvidiaCards(const std::string& folder) {
  NvidiaCards found;
  found.driver = DriverVersion(ValueOf(TextOf(folder + "/version"), "NVRM version:"));
  std::error_code error;
  for (std::filesystem::directory_iterator card(folder + "/gpus", error), end; !error && card != end; card.increment(error)) {
    const std::string model = ValueOf(TextOf(card->path() / "information"), "Model:");
    NvidiaCard& each = found.cards.emplace_back();
    each.bus = card->path().filename();
    each.model = model.empty() ? kUnnamed : model;
  }
  std::sort(found.cards.begin(), found.cards.end(), [](const auto& a, const auto& b) { return a.bus < b.bus; });
  return found;
}

std::string Describe(const NvidiaCards& found) {
  std::vector<std::string> parts;
  for (size_t i = 0, count = 1; i < found.cards.size(); i += count, count = 1) {
    while (i + count < found.cards.size() && found.cards[i + count].model == found.cards[i].model) ++count;
    parts.push_back(count == 1 ? found.cards[i].model : absl::StrCat(count, " x ", found.cards[i].model));
  }
  parts.push_back(found.driver.empty() ? "driver not known" : absl::StrCat("driver ", found.driver));
  return absl::StrJoin(parts, ", ");
}

std::string Name(const NvidiaCard& card) { return absl::StrCat(card.model, " at ", card.bus); }

std::string Holders(const std::vector<CardProcess>& processes) {
  std::vector<std::string> parts;
  for (const CardProcess& process : processes) {
    parts.push_back(process.name.empty() ? absl::StrCat("process ", process.pid)
                                         : absl::StrCat(process.name, " (process ", process.pid, ")"));
    if (process.bytes >= 0) absl::StrAppend(&parts.back(), " ", Gibibytes(process.bytes));
    if (parts.size() == kMostHolders) break;
  }
  return absl::StrJoin(parts, ", ");
}

std::string WhyUnusable(const MemoryErrors& errors) {
  if (errors.remap_failed) return "a bad row of its memory could not be remapped";
  return errors.contains ? "" : Uncorrected(errors);
}

std::string Contained(const MemoryErrors& errors) {
  return errors.contains && errors.uncorrected > 0 ? absl::StrCat(Uncorrected(errors), ", but the card contained") : "";
}

std::string Gibibytes(int64_t bytes) { return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30)); }

}  // namespace motley::worker
