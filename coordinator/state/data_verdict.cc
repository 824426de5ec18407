#include "coordinator/state/data_verdict.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/data/data_size.h"

namespace motley::coordinator {
namespace {

constexpr char kPath[] = "data.path", kValidationPath[] = "data.validation_path";

std::string Other(const char* key, const std::string& path, const DataSummary& seen, const DataSummary& reference,
                  const NodeName& node) {
  const std::string than =
      node.empty() ? absl::StrCat("when the job began (digest ", reference.digest, ")")
                   : absl::StrCat("on node ", node.value(), " (", SizeText(reference), ", digest ", reference.digest, ")");
  return absl::StrCat(key, " '", path, "' holds other data (", SizeText(seen), ", digest ", seen.digest, ") than ", than);
}

// The data of one path.
struct DataOfPath {
  const char* key;
  const std::string& path;
  const DataSummary& data;

  absl::Status Refuse(const absl::Status& why) const {
    if (why.ok()) return why;
    return absl::Status(why.code(), absl::StrCat(key, " '", path, "': ", why.message()));
  }
};

absl::Status CheckTokenizer(const DataOfPath& of, const JobConfig& config, const std::string& of_weights) {
  if (of_weights.empty() || config.data.any_tokenizer) return absl::OkStatus();
  const std::string& folder = config.checkpoint.initial;
  if (of.data.kind == DataKind::kText) {
    return absl::FailedPreconditionError(absl::StrCat(
        "it is plain text, whose bytes would be the tokens, and the weights of checkpoint.initial '", folder,
        "' have a tokenizer; make their tokens (motley data prepare --tokenizer ", folder, " --out TOKENS ", of.path,
        ", or of a folder the files in it) and give TOKENS as ", of.key, ", or set data.any_tokenizer = true to train on bytes"));
  }
  // Others' files say nothing of it.
  if (of.data.tokenizer.empty() || of.data.tokenizer == of_weights) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "its tokens are of another tokenizer (tokenizer.json with digest ", of.data.tokenizer,
      ") than the weights of checkpoint.initial '", folder, "' (digest ", of_weights, "); prepare them with --tokenizer ", folder,
      ", or set data.any_tokenizer = true where both are known to have the same words"));
}

absl::Status CheckOneTokenizer(const DataSummary& data, const DataSummary& validation, const JobConfig& config) {
  const bool differ = data.kind == DataKind::kText || validation.kind == DataKind::kText
                          ? data.kind != validation.kind
                          : !data.tokenizer.empty() && !validation.tokenizer.empty() && data.tokenizer != validation.tokenizer;
  if (!differ || config.data.any_tokenizer) return absl::OkStatus();
  const auto words = [](const DataSummary& summary) {
    return summary.kind == DataKind::kText ? std::string("plain text")
           : summary.tokenizer.empty()     ? std::string("tokens")
                                           : absl::StrCat("tokens of tokenizer ", summary.tokenizer);
  };
  return absl::FailedPreconditionError(absl::StrCat("data.path holds ", words(data), " and this ", words(validation),
                                                    "; prepare both with one tokenizer, or set data.any_tokenizer = true"));
}

}  // namespace

std::string DataKey(const DataSummary& data, const DataSummary& validation) {
  return absl::StrCat(data.digest, " ", validation.digest);
}

std::string OtherData(const JobConfig& config, const StorageReport& report, const DataReference& reference) {
  if (report.data.digest != reference.data.digest) {
    return Other(kPath, config.data.path, report.data, reference.data, reference.node);
  }
  if (report.validation.digest != reference.validation.digest) {
    return Other(kValidationPath, config.data.validation_path, report.validation, reference.validation, reference.node);
  }
  return "";
}

absl::Status CheckJobsData(const JobConfig& config, const StorageReport& report) {
  const DataSection& section = config.data;
  const int64_t seq_len = config.training.seq_len;
  const absl::StatusOr<ModelShape> model = ResolveModel(config);  // was looked at when the job came
  const DataOfPath data{kPath, section.path, report.data},
      validation{kValidationPath, section.validation_path, report.validation};
  const auto check = [&](const DataOfPath& of, double fraction, int64_t samples) -> absl::Status {
    if (model.ok()) MOTLEY_RETURN_IF_ERROR(of.Refuse(CheckDataFits(of.data, seq_len, model->vocab_size)));
    MOTLEY_RETURN_IF_ERROR(of.Refuse(CheckDataSize(of.data, seq_len, fraction, samples)));
    return of.Refuse(CheckTokenizer(of, config, report.initial_tokenizer));
  };
  MOTLEY_RETURN_IF_ERROR(check(data, ValidationFraction(section), section.validation_samples));
  if (section.validation_path.empty()) return absl::OkStatus();
  if (report.validation.digest.empty()) {
    return validation.Refuse(absl::FailedPreconditionError(
        "the nodes' workers are of a version that knows no data of validations; upgrade them, or leave the key out"));
  }
  MOTLEY_RETURN_IF_ERROR(check(validation, kAllForValidation, section.validation_samples));
  return validation.Refuse(CheckOneTokenizer(report.data, report.validation, config));
}

}  // namespace motley::coordinator
