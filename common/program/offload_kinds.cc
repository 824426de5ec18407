#include "common/program/offload_kinds.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/listed.h"
#include "common/base/nearest.h"

namespace motley {
namespace {

constexpr std::pair<const char*, bool OffloadKinds::*> kWords[] = {{"activations", &OffloadKinds::activations},
                                                                   {"parameters", &OffloadKinds::parameters},
                                                                   {"gradients", &OffloadKinds::gradients},
                                                                   {"optimizer", &OffloadKinds::optimizer}};
constexpr char kWhatItMayBe[] = "it is auto, never, or a list such as activations,parameters,gradients,optimizer";

absl::Status SetWord(const std::string& word, OffloadKinds* kinds) {
  if (AddWord(word, kinds)) return absl::OkStatus();
  if (word == "auto" || word == "never") {
    return absl::InvalidArgumentError(absl::StrCat("'", word, "' stands alone; ", kWhatItMayBe));
  }
  const std::string nearest = NearestWord(word, {"auto", "never", "activations", "parameters", "gradients", "optimizer"});
  return absl::InvalidArgumentError(absl::StrCat(Quoted(word), " is not known", nearest.empty() ? "; " : "; did you mean ",
                                                 nearest.empty() ? kWhatItMayBe : absl::StrCat("'", nearest, "'?")));
}

}  // namespace

std::vector<std::string> WordsOf(const OffloadKinds& kinds) {
  std::vector<std::string> words;
  for (const auto& [word, flag] : kWords) {
    if (kinds.*flag) words.push_back(word);
  }
  return words;
}

bool AddWord(std::string_view word, OffloadKinds* kinds) {
  for (const auto& [known, flag] : kWords) {
    if (word == known) return kinds->*flag = true;
  }
  return false;
}

std::string InWords(const OffloadKinds& kinds) {
  std::vector<std::string> words = WordsOf(kinds);
  if (words.empty()) return "nothing";
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : absl::StrCat(absl::StrJoin(words, ", "), " and ", last);
}

absl::StatusOr<OffloadKinds> ParseOffload(std::string_view text) {
  if (text == "auto") return OffloadKinds::All();
  if (text == "never") return OffloadKinds::None();
  const std::vector<std::string> words = Listed(text);
  if (words.empty()) return absl::InvalidArgumentError(absl::StrCat("nothing is said; ", kWhatItMayBe));
  OffloadKinds kinds;
  for (const std::string& word : words) {
    if (const absl::Status status = SetWord(word, &kinds); !status.ok()) return status;
  }
  return kinds;
}

}  // namespace motley
