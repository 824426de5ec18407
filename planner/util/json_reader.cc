#include "planner/util/json_reader.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/nearest.h"

namespace motley::planner {

void JsonReader::Keys(std::initializer_list<std::string_view> known) const {
  if (!json_.is_object()) return Fail("must be an object");
  for (const auto& [key, value] : json_.items()) {
    bool found = false;
    for (const std::string_view k : known) found |= key == k;
    if (found) continue;
    const std::string nearest = NearestWord(key, std::vector<std::string>(known.begin(), known.end()));
    return Fail(
        absl::StrCat("unknown key ", Quoted(key), nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?")));
  }
}

void JsonReader::Read(std::string* out) const {
  if (!json_.is_string()) return Fail("must be a string");
  *out = json_.get<std::string>();
}

void JsonReader::Read(double* out) const {
  if (!json_.is_number() || !std::isfinite(json_.get<double>())) return Fail("must be a number");
  *out = json_.get<double>();
}

void JsonReader::Read(int64_t* out) const {
  const bool fits = !json_.is_number_unsigned() || json_.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
  if (!json_.is_number_integer() || !fits) return Fail("must be an integer");
  *out = json_.get<int64_t>();
}

void JsonReader::Read(int* out) const {
  int64_t wide = 0;
  Read(&wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) return Fail("must be a small integer");
  *out = static_cast<int>(wide);
}

void JsonReader::Read(bool* out) const {
  if (!json_.is_boolean()) return Fail("must be true or false");
  *out = json_.get<bool>();
}

void JsonReader::Fail(std::string_view what) const {
  if (status_->ok()) *status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", std::string(what)));
}

}  // namespace motley::planner
