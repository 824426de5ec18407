#include "worker/engine/model/job_base.h"

#include "absl/strings/str_cat.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"

namespace motley::engine {

absl::StatusOr<std::string> JobBase::Keep(const std::string& root, int64_t epoch, const JobUid& uid) {
  if (!all_) {
    const absl::Status read = ReadFiles(root);
    // What is there, and cannot be read now, need not be written.
    if (FaultOf(read) == Fault::kStorage && WasIn(root)) return name_;
    MOTLEY_RETURN_IF_ERROR(read);
    all_.emplace(std::move(base_));
  }
  if (all_->base.tensors.empty() && all_->base.files.empty()) return std::string();
  MOTLEY_RETURN_IF_ERROR(KeepBase(*all_, root, epoch, uid));
  root_ = root;
  name_ = all_->name;
  return name_;
}

absl::StatusOr<std::string> JobBase::KeepOrSay(const std::string& root, int64_t epoch, const JobUid& uid,
                                               const std::function<void(const std::string&)>& log) {
  absl::StatusOr<std::string> name = Keep(root, epoch, uid);
  if (name.ok()) return name;
  const absl::Status& error = name.status();
  if (FaultOf(error) == Fault::kStorage && !absl::IsPermissionDenied(error)) return name;
  log(absl::StrCat("the checkpoint is without the files of the weights that the job began from, and so are its exports: ",
                   error.message()));
  return WasIn(root) ? name_ : std::string();
}

absl::Status JobBase::ReadFiles(const std::string& root) {
  if (!weights_folder_.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(base_.files, ReadSmallFiles(weights_folder_, open_));
  } else if (WasIn(root)) {
    return ReadOrMakeAgain(root);
  } else if (!name_.empty()) {
    MOTLEY_ASSIGN_OR_RETURN(base_, ReadBase(root_, name_));
  }
  return base_.Find(kTokenizerName) == nullptr ? AddTokenizerOfData() : absl::OkStatus();
}

absl::Status JobBase::ReadOrMakeAgain(const std::string& root) {
  absl::StatusOr<BaseModel> base = ReadBase(root, name_);
  const absl::Status gone = base.status();
  if (absl::IsNotFound(gone)) base = again_();
  if (!base.ok() && !absl::IsNotFound(base.status())) return base.status();
  base_ = base.ok() ? *std::move(base) : BaseModel();
  if (absl::IsNotFound(gone) && base_.Find(kTokenizerName) == nullptr) MOTLEY_RETURN_IF_ERROR(AddTokenizerOfData());
  return base_.tensors.empty() && base_.files.empty() ? gone : absl::OkStatus();
}

absl::Status JobBase::AddTokenizerOfData() {
  const absl::Status tokens = open_(absl::StrCat(data_path_, "/tokens.json")).status();
  if (absl::IsNotFound(tokens)) return absl::OkStatus();  // text
  MOTLEY_RETURN_IF_ERROR(tokens);
  absl::StatusOr<std::vector<SmallFile>> files = ReadSmallFiles(absl::StrCat(data_path_, "/tokenizer"), open_);
  if (absl::IsNotFound(files.status())) return absl::OkStatus();
  MOTLEY_RETURN_IF_ERROR(files.status());
  for (SmallFile& file : *files) {
    // Its config.json and its card are of the model that the tokenizer came with.
    const bool of_tokenizer = file.name != kModelConfigName && file.name != kCardName;
    if (of_tokenizer && base_.Find(file.name) == nullptr) base_.files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

}  // namespace motley::engine
