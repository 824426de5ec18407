// The base (common/weights/base_model.h) of a job's checkpoints, as rank 0 writes it at its first save.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/weights/base_model.h"

namespace motley::engine {

// Not thread-safe.
class JobBase {
 public:
  // `data_path`: of the job; a folder of tokens holds their tokenizer, which exports have where no other is known.
  JobBase(std::string data_path, OpenPath open) : data_path_(std::move(data_path)), open_(std::move(open)) {}

  // The job goes on from a checkpoint, or begins with its weights: `name` beside it, in the folder `root`; empty: it has none.
  // `again` makes it anew where it is gone; NOT_FOUND: it cannot.
  void GoOn(std::string root, std::string name, std::function<absl::StatusOr<BaseModel>()> again) {
    root_ = std::move(root), name_ = std::move(name), again_ = std::move(again);
  }
  // The job begins with the weights of a folder of HuggingFace's, which `base` describes without its files.
  void BeginWith(BaseModel base, std::string folder) { base_ = std::move(base), weights_folder_ = std::move(folder); }

  // Sees that the base is in the folder `root`, and whole; returns its name, empty where there is none. It is read once, and
  // held from then on: somebody may delete it beside a job that trains, which writes it again. Errors name what cannot be read or
  // written; Fault::kStorage: now.
  absl::StatusOr<std::string> Keep(const std::string& root, int64_t epoch, const JobUid& uid);
  // The same, for a checkpoint that is written: without its base it is whole, only its exports are not as the folder was that
  // the job began from. So it is published without one, and `log` hears why, unless the error may be gone in a moment. A right
  // that is refused is not: training saves nothing, or ends, for want of a licence's text. One that was there keeps its name:
  // whoever puts it back mends all checkpoints.
  absl::StatusOr<std::string> KeepOrSay(const std::string& root, int64_t epoch, const JobUid& uid,
                                        const std::function<void(const std::string&)>& log);

 private:
  bool WasIn(const std::string& root) const { return !name_.empty() && root_ == root; }
  absl::Status ReadFiles(const std::string& root);
  absl::Status ReadOrMakeAgain(const std::string& root);
  absl::Status AddTokenizerOfData();

  std::string data_path_;
  OpenPath open_;
  BaseModel base_;                // as far as it was read
  std::optional<NamedBase> all_;  // whole; it may be empty
  std::string weights_folder_;    // to be read from; empty: not from there
  std::string root_, name_;       // where it is
  std::function<absl::StatusOr<BaseModel>()> again_;
};

}  // namespace motley::engine
