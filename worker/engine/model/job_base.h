// The base (common/weights/base_model.h) of a job's checkpoints, as rank 0 writes it at its first save.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/weights/base_model.h"

namespace motley::engine {

// Not thread-safe.
class JobBase {
 public:
  // `data_path`: of the job; a folder of tokens holds their tokenizer, which exports have where no other is known.
  JobBase(std::string data_path, OpenPath open) : data_path_(std::move(data_path)), open_(std::move(open)) {}

  // The job goes on from a checkpoint, or begins with its weights: `name` beside it, in the folder `root`; empty: it has none.
  void GoOn(std::string root, std::string name) { root_ = std::move(root), name_ = std::move(name); }
  // The job begins with the weights of a folder of HuggingFace's, which `base` describes without its files.
  void BeginWith(BaseModel base, std::string folder) { base_ = std::move(base), weights_folder_ = std::move(folder); }

  // Sees that the base is in the folder `root`; returns its name, empty where there is none. Errors name what cannot be read or
  // written; Fault::kStorage: now. Once it is there nothing is read any more.
  absl::StatusOr<std::string> Keep(const std::string& root, int64_t epoch);
  // The same, for a checkpoint that is written: without its base it is whole, only its exports are not as the folder was that
  // the job began from. So it is published without one, and `log` hears why, unless the error may be gone in a moment. A right
  // that is refused is not: training saves nothing, or ends, for want of a licence's text.
  absl::StatusOr<std::string> KeepOrSay(const std::string& root, int64_t epoch,
                                        const std::function<void(const std::string&)>& log);

 private:
  absl::Status ReadFiles();
  absl::Status AddTokenizerOfData();

  std::string data_path_;
  OpenPath open_;
  BaseModel base_;
  std::string weights_folder_;  // to be read from; empty: not from there
  std::string root_, name_;     // where it is
  bool kept_ = false;
};

}  // namespace motley::engine
