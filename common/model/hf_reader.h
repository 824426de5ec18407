// Typed reads of a HuggingFace config.json that go on after a wrong key, so that all problems are said at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace motley {

inline constexpr char kNotTrainedYet[] = "the engine does not train it yet";

// One thing about a config that its ModelShape does not say. Without `effect` no shape comes of the config at all.
struct HfFinding {
  std::string source;   // "config.json"
  std::string subject;  // the key, mostly with its value: "mlp_bias true"
  std::string refusal;  // goes on after the subject: " is not supported; use false"; empty: it is trained all the same
  std::string effect;   // what pricing without it means, for those that need the sizes alone
  std::string trained = kNotTrainedYet;
};

// Absent and null are the same, but for Given. What is read of a wrong key is 0, or the fallback where there is one.
class HfReader {
 public:
  // Far above any model; together they keep every product of sizes, in bytes, within int64.
  static constexpr int64_t kMaxSize = int64_t{1} << 20;
  static constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
  static constexpr int64_t kMaxLayers = 10000;
  static constexpr int64_t kMaxHeads = 4096;
  static constexpr int64_t kMaxHeadDim = 4096;

  HfReader(const nlohmann::json& json, std::string source, std::vector<HfFinding>* findings)
      : json_(json), source_(std::move(source)), findings_(*findings) {}

  bool Has(const std::string& key) const { return json_.contains(key) && !json_.at(key).is_null(); }
  // Present, were it null: for the keys whose absence means another value than null.
  bool Given(const std::string& key) const { return json_.contains(key); }
  const nlohmann::json& At(const std::string& key) const { return json_.at(key); }
  // Of the object under `key`; what is wrong of it is found here too.
  HfReader Inner(const std::string& key) const { return {json_.at(key), source_ + ": " + key, &findings_}; }

  // A size of at least 1; required when `fallback` is 0.
  int64_t Size(const std::string& key, int64_t fallback = 0, int64_t limit = kMaxSize) const;
  double Positive(const std::string& key, double fallback) const;
  bool Flag(const std::string& key, bool fallback) const;

  // No shape comes of it, whoever asks.
  void Wrong(const std::string& key, const std::string& what) const;
  // A present key that makes another model of it.
  void Never(const std::string& key, const std::string& why) const;
  // Something that the engine does not compute; `effect` is what pricing without it means.
  void Untrained(const std::string& subject, const std::string& refusal, const std::string& effect,
                 const std::string& trained = kNotTrainedYet) const;
  // Something that is trained without; `trained` says so.
  void Noted(const std::string& subject, const std::string& effect, const std::string& trained) const;
  // The same for every present value other than these.
  void Only(const std::string& key, const std::vector<nlohmann::json>& allowed, const std::string& effect) const;

 private:
  const nlohmann::json& json_;
  const std::string source_;
  std::vector<HfFinding>& findings_;
};

}  // namespace motley
