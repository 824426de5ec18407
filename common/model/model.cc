#include "common/model/model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/model/parameters.h"

namespace motley {
namespace {

// Without the windows that hold so many tokens.
ModelShape ForSequencesOf(int64_t seq_len, ModelShape shape) {
  for (LayerKind& kind : shape.layer_kinds) kind.window = kind.window >= seq_len ? 0 : kind.window;
  const auto plain = [](const LayerKind& kind) { return kind == LayerKind(); };
  if (std::all_of(shape.layer_kinds.begin(), shape.layer_kinds.end(), plain)) shape.layer_kinds.clear();
  return shape;
}

}  // namespace

bool SameModel(const ModelShape& a, const ModelShape& b, int64_t seq_len) {
  return ForSequencesOf(seq_len, a) == ForSequencesOf(seq_len, b);
}

std::string ModelWords(const ModelShape& shape) {
  std::string words = absl::StrCat(NumParameters(shape), " parameters");
  const auto windowed = [](const LayerKind& kind) { return kind.window != 0; };
  const auto first = std::find_if(shape.layer_kinds.begin(), shape.layer_kinds.end(), windowed);
  if (first == shape.layer_kinds.end()) return words;
  const auto layers = std::count_if(first, shape.layer_kinds.end(), windowed);
  absl::StrAppend(&words, " and a window of ", first->window, " tokens in ", layers, " of its layers");
  return words;
}

}  // namespace motley
