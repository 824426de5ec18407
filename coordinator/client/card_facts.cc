#include "coordinator/client/card_facts.h"

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "common/weights/weights_folder.h"
#include "common/wire/job.h"
#include "coordinator/client/watch.h"

namespace motley::client {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDownload = "models--";

std::string LastPart(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

void AddStep(const v1::StepRecord& step, CardFacts* facts) {
  StepLosses& losses = facts->losses[step.step()];
  losses = {.training = step.loss()};
  if (step.has_validation_loss()) losses.validation = step.validation_loss();
}

}  // namespace

std::string BaseModelName(const std::string& initial) {
  if (initial.find('/') == std::string::npos) return "";
  const absl::StatusOr<std::string> weights = FindWeightsFolder(initial, OpenAnywhere);
  if (weights.ok() && weights->empty()) return "";
  for (const fs::path& part : fs::path(initial)) {
    const std::string name = part.string();
    if (name.starts_with(kDownload)) return absl::StrReplaceAll(name.substr(kDownload.size()), {{"--", "/"}});
  }
  return LastPart(initial);
}

CardFacts CardFactsOf(absl::Time now) { return {.date = absl::FormatTime("%Y-%m-%d", now, absl::UTCTimeZone())}; }

CardFacts CardFactsOf(Connection& connection, const v1::Job& job, absl::Time now) {
  const JobConfig config = wire::FromProto(job.spec());
  CardFacts facts = CardFactsOf(now);
  facts.job_name = config.name;
  facts.base_model = BaseModelName(config.checkpoint.initial);
  facts.data = LastPart(config.data.path);
  facts.validation_data = LastPart(config.data.validation_path);
  facts.seq_len = config.training.seq_len;
  facts.global_batch_size = config.training.global_batch_size;
  if (job.has_last_step()) AddStep(job.last_step(), &facts);
  const Watch watch{job.id(),
                    [&](const v1::JobUpdate& update) {
                      if (update.has_step()) AddStep(update.step(), &facts);
                    },
                    [](const std::string&) {}};
  (void)WatchUntilNow(connection, job, watch);  // a card with fewer losses is one all the same
  return facts;
}

}  // namespace motley::client
