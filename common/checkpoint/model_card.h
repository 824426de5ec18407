// The README.md of an exported model: what it was made from, by which job and how far, as hubs read it (a model card). It says
// what is known and nothing else. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace motley {

struct BaseModel;
struct CheckpointManifest;

// The name of the card that came with the weights which the job began from.
inline constexpr char kBaseCardName[] = "README.base.md";

struct StepLosses {
  double training = 0;
  std::optional<double> validation;  // absent: it was not measured behind this step
};
// What a checkpoint does not say. Empty or 0: not known.
struct CardFacts {
  std::string date;                            // of the export: "2026-11-28"
  std::string job_name;                        // for people
  std::string base_model;                      // "Qwen2.5-0.5B": of a job that began with a folder of HuggingFace's
  std::string data, validation_data;           // names, without the folders above
  int64_t seq_len = 0, global_batch_size = 0;  // of each step
  std::map<int64_t, StepLosses> losses;        // by step; those of later steps than the checkpoint's are passed over
};

// YAML that hubs read, and a table for people. Of a base it takes over the license, where that one's card names it in a line.
std::string ModelCard(const CheckpointManifest& manifest, const BaseModel& base, const CardFacts& facts);

}  // namespace motley
