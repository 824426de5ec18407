#include "common/job/offload_kinds.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"
#include "common/job/job.h"

namespace motley {
namespace {

constexpr std::pair<const char*, bool OffloadKinds::*> kWords[] = {{"activations", &OffloadKinds::activations},
                                                                   {"parameters", &OffloadKinds::parameters},
                                                                   {"optimizer", &OffloadKinds::optimizer}};
constexpr char kWhatItMayBe[] = "it is auto, never, or a list such as activations,parameters,optimizer";

absl::Status SetWord(const std::string& word, OffloadKinds* kinds) {
  for (const auto& [known, flag] : kWords) {
    if (word == known) return kinds->*flag = true, absl::OkStatus();
  }
  if (word == "gradients") {
    return absl::InvalidArgumentError(absl::StrCat("gradients are not offloaded yet; ", kWhatItMayBe));
  }
  if (word == "auto" || word == "never") {
    return absl::InvalidArgumentError(absl::StrCat("'", word, "' stands alone; ", kWhatItMayBe));
  }
  const std::string nearest = NearestWord(word, {"auto", "never", "activations", "parameters", "optimizer"});
  return absl::InvalidArgumentError(absl::StrCat(Quoted(word), " is not known", nearest.empty() ? "; " : "; did you mean ",
                                                 nearest.empty() ? kWhatItMayBe : absl::StrCat("'", nearest, "'?")));
}

}  // namespace

std::string InWords(const OffloadKinds& kinds) {
  std::vector<std::string> words;
  for (const auto& [word, flag] : kWords) {
    if (kinds.*flag) words.push_back(word);
  }
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
