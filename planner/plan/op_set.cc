#include "planner/plan/op_set.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"
#include "common/model/layer_table.h"

namespace motley::planner {

// Of a layer, in execution order. The embedding and the head are never recomputed by operator.
std::string ToText(OpSet set) {
  if (set.all()) return "full";
  std::vector<std::string> names;
  for (const Op op : AllLayerOps()) {
    if (set.Has(op)) names.emplace_back(OpName(op));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ",");
}

absl::StatusOr<OpSet> ParseOpSet(std::string_view text) {
  if (text == "none") return OpSet::None();
  if (text == "full") return OpSet::All();
  OpSet set;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(std::string(text), ','))) {
    bool found = false;
    for (const Op op : AllLayerOps()) {
      if (word != OpName(op)) continue;
      set = set.With(op);
      found = true;
    }
    if (found) continue;
    std::vector<std::string> known = {"none", "full"};
    for (const Op op : AllLayerOps()) known.emplace_back(OpName(op));
    const std::string nearest = NearestWord(word, known);
    return absl::InvalidArgumentError(absl::StrCat(
        "operator ", Quoted(word), " is not known", nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?"),
        " Use none, full, or operators separated by commas: ", absl::StrJoin(known.begin() + 2, known.end(), ", ")));
  }
  return set;
}

}  // namespace motley::planner
