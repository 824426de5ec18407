// One JSON value and its path, so that every error can name the place. The first error sticks; what was wrong keeps its default.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace motley::planner {

class JsonReader {
 public:
  using Json = nlohmann::ordered_json;

  JsonReader(const Json& json, std::string path, absl::Status* status) : json_(json), path_(std::move(path)), status_(status) {}

  // Fails unless the value is an object whose keys are all `known`; names the nearest.
  void Keys(std::initializer_list<std::string_view> known) const;
  bool Has(const char* key) const { return json_.is_object() && json_.contains(key); }
  // Call only where Has(key).
  JsonReader operator[](const char* key) const { return JsonReader(json_.at(key), path_ + "." + key, status_); }

  // Leaves `*out` when the key is missing.
  template <typename T>
  void Get(const char* key, T* out) const {
    if (Has(key)) (*this)[key].Read(out);
  }
  void Read(std::string* out) const;
  void Read(double* out) const;  // finite
  void Read(int64_t* out) const;
  void Read(int* out) const;
  void Read(bool* out) const;
  template <typename T>
  void Read(std::vector<T>* out) const {
    ForEach([out](const JsonReader& item) { item.Read(&out->emplace_back()); });
  }
  template <typename F>
  void ForEach(F&& use) const {
    if (!json_.is_array()) return Fail("must be a list");
    for (size_t i = 0; i < json_.size() && status_->ok(); ++i) {
      use(JsonReader(json_[i], path_ + "[" + std::to_string(i) + "]", status_));
    }
  }
  void Fail(std::string_view what) const;

 private:
  const Json& json_;
  const std::string path_;
  absl::Status* const status_;
};

}  // namespace motley::planner
