#include "common/model/hf_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/parse_json.h"

namespace motley {
namespace {

using Json = nlohmann::json;

}  // namespace

int64_t HfReader::Size(const std::string& key, int64_t fallback, int64_t limit) const {
  if (!Has(key)) {
    if (fallback == 0) Wrong(key, "is missing");
    return fallback;
  }
  const Json& value = json_.at(key);
  if (!value.is_number_integer()) {
    Wrong(key, absl::StrCat("must be an integer, got ", EchoJson(value)));
  } else if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(limit)) {
    // Unsigned values above the limit would wrap in a signed read.
    Wrong(key, absl::StrCat("must be at most ", limit, ", got ", EchoJson(value)));
  } else if (value.get<int64_t>() < 1) {
    Wrong(key, absl::StrCat("must be at least 1, got ", EchoJson(value)));
  } else {
    return value.get<int64_t>();
  }
  return fallback;
}

double HfReader::Positive(const std::string& key, double fallback) const {
  if (!Has(key)) return fallback;
  const Json& value = json_.at(key);
  if (value.is_number() && value.get<double>() > 0) return value.get<double>();
  Wrong(key, absl::StrCat("must be a number above 0, got ", EchoJson(value)));
  return fallback;
}

bool HfReader::Flag(const std::string& key, bool fallback) const {
  if (!Has(key)) return fallback;
  const Json& value = json_.at(key);
  if (value.is_boolean()) return value.get<bool>();
  Wrong(key, absl::StrCat("must be true or false, got ", EchoJson(value)));
  return fallback;
}

void HfReader::Wrong(const std::string& key, const std::string& what) const {
  findings_.push_back({source_, key, absl::StrCat(" ", what), ""});
}

void HfReader::Never(const std::string& key, const std::string& why) const {
  if (Has(key)) findings_.push_back({source_, absl::StrCat(key, " ", EchoJson(json_.at(key))), absl::StrCat(": ", why), ""});
}

void HfReader::Untrained(const std::string& subject, const std::string& refusal, const std::string& effect,
                         const std::string& trained) const {
  findings_.push_back({source_, subject, refusal, effect, trained});
}

void HfReader::Noted(const std::string& subject, const std::string& effect, const std::string& trained) const {
  findings_.push_back({source_, subject, "", effect, trained});
}

void HfReader::Only(const std::string& key, const std::vector<Json>& allowed, const std::string& effect) const {
  if (!Has(key) || std::find(allowed.begin(), allowed.end(), json_.at(key)) != allowed.end()) return;
  const std::string use = allowed.empty() ? "remove it" : absl::StrCat("use ", EchoJson(allowed.front()));
  Untrained(absl::StrCat(key, " ", EchoJson(json_.at(key))), absl::StrCat(" is not supported; ", use), effect);
}

}  // namespace motley
