#include "common/checkpoint/special_tokens.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/parse_json.h"

namespace motley {
namespace {

using Json = nlohmann::json;

// An object, or null: a file of another program's that says nothing here.
Json Parsed(const BaseModel& base, const char* name) {
  const std::string* text = base.Find(name);
  if (text == nullptr) return Json();
  absl::StatusOr<Json> json = ParseJson(*text, name);
  return json.ok() && json->is_object() ? *std::move(json) : Json();
}

// Of an object; null where there is none, or it is no object.
const Json& At(const Json& object, const std::string& key) {
  static const auto* const kNull = new Json();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? *kNull : *found;
}

// "</s>", or {"content": "</s>", "lstrip": false, ...}.
std::string TextOf(const Json& token) {
  const Json& text = token.is_object() ? At(token, "content") : token;
  return text.is_string() ? text.get<std::string>() : "";
}

class Tokenizer {
 public:
  explicit Tokenizer(const BaseModel& base) : base_(base), config_(Parsed(base, "tokenizer_config.json")) {}

  // "eos_token"; empty: it has none.
  std::string Named(const std::string& key) const {
    if (config_.contains(key)) return TextOf(config_.at(key));
    return TextOf(At(Parsed(base_, "special_tokens_map.json"), key));
  }
  // Null: it is no token. tokenizer.json has them all, and is the largest file by far.
  Json IdOf(const std::string& token) {
    for (const auto& [id, entry] : At(config_, "added_tokens_decoder").items()) {
      int64_t number = 0;
      if (TextOf(entry) == token && absl::SimpleAtoi(id, &number)) return number;
    }
    if (!all_) all_ = Parsed(base_, kTokenizerName);
    for (const Json& entry : At(*all_, "added_tokens")) {
      if (TextOf(entry) == token) return At(entry, "id");
    }
    return IdIn(At(At(*all_, "model"), "vocab"), token);
  }

 private:
  // {"a": 0, "b": 1}, or of unigrams [["a", -1.5], ["b", -2.5]].
  static Json IdIn(const Json& vocab, const std::string& token) {
    if (vocab.is_object()) return At(vocab, token);
    if (!vocab.is_array()) return Json();
    const auto at = std::find_if(vocab.begin(), vocab.end(), [&](const Json& entry) {
      return entry.is_array() && !entry.empty() && TextOf(entry.front()) == token;
    });
    return at == vocab.end() ? Json() : Json(at - vocab.begin());
  }

  const BaseModel& base_;
  const Json config_;
  std::optional<Json> all_;
};

bool IsId(const Json& id, int64_t vocab_size) {
  return id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() < vocab_size;
}

bool AreIds(const Json& ids, int64_t vocab_size) {
  return ids.is_array() && !ids.empty() &&
         std::all_of(ids.begin(), ids.end(), [&](const Json& id) { return IsId(id, vocab_size); });
}

}  // namespace

Json SpecialTokenIds(const BaseModel& base, int64_t vocab_size) {
  const Json generation = Parsed(base, "generation_config.json");
  Tokenizer tokenizer(base);
  Json ids = Json::object();
  for (const std::string kind : {"bos", "eos", "pad"}) {
    const std::string key = absl::StrCat(kind, "_token_id");
    Json id = At(generation, key);
    const bool several = kind == "eos" && AreIds(id, vocab_size);
    if (!several && !IsId(id, vocab_size)) {
      const std::string token = tokenizer.Named(absl::StrCat(kind, "_token"));
      id = token.empty() ? Json() : tokenizer.IdOf(token);
      if (!IsId(id, vocab_size)) continue;
    }
    ids[key] = std::move(id);
  }
  return ids;
}

}  // namespace motley
