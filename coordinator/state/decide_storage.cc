#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/data/dataset.h"
#include "coordinator/state/decide_view.h"
#include "coordinator/state/setup_reach.h"

namespace motley::coordinator {
namespace {

// The node that wrote the token may be the one with another folder: it is when most of the others do not see what it wrote.
bool WriterIsOdd(const DecideView& v) {
  int asked = 0, blind = 0;
  for (const auto& [node, answer] : v.run.storage) {
    if (node == v.run.token_writer || !answer.answered || !answer.report.error.empty()) continue;
    ++asked;
    blind += !answer.report.token_seen;
  }
  return !v.run.token.empty() && blind >= 2 && 2 * blind > asked;
}

}  // namespace

std::optional<Decision> StorageVerdict(const DecideView& v) {
  const bool all_answered =
      std::all_of(v.run.storage.begin(), v.run.storage.end(), [](const auto& a) { return a.second.answered; });
  if (v.run.has_run && all_answered && WriterIsOdd(v)) {
    return Decision{LeaveOutNode{v.run.token_writer},
                    absl::StrCat("node ", v.run.token_writer.value(), ": checkpoint.folder '", v.job.config.checkpoint.folder,
                                 "' is not the folder of the other nodes; use a folder that all nodes share")};
  }
  std::string digest = v.job.data_digest, digest_node;
  int64_t bytes = -1;
  for (const auto& [node, answer] : v.run.storage) {
    if (!answer.answered) continue;
    std::string complaint = answer.report.error;
    const absl::StatusCode code = complaint.empty() ? absl::StatusCode::kFailedPrecondition : answer.report.error_code;
    if (complaint.empty() && !v.run.token.empty() && node != v.run.token_writer && !answer.report.token_seen) {
      if (v.run.has_run && !all_answered) continue;  // perhaps it is the writer's folder that differs
      complaint =
          absl::StrCat("checkpoint.folder '", v.job.config.checkpoint.folder, "' is not the same folder as on node ",
                       v.run.token_writer.value(), ": what that node wrote cannot be read; use a folder that all nodes share");
    }
    if (complaint.empty() && !digest.empty() && answer.report.data_digest != digest) {
      complaint = absl::StrFormat("data.path '%s' holds other data (%d bytes, digest %s) than %s (%sdigest %s)",
                                  v.job.config.data.path, answer.report.data_bytes, answer.report.data_digest,
                                  digest_node.empty() ? "when the job began" : absl::StrCat("on node ", digest_node),
                                  bytes < 0 ? "" : absl::StrFormat("%d bytes, ", bytes), digest);
      // The job's data was changed, and not a newcomer's copy of it.
      if (digest_node.empty() && !(v.run.has_run && v.run.storage.size() > 1)) {
        absl::StrAppend(
            &complaint, "; put it back, or begin a new job",
            v.job.newest_checkpoint.empty() ? "" : absl::StrCat(" with checkpoint.initial = '", v.job.id.value(), "'"));
      }
    }
    if (complaint.empty()) {
      const JobConfig& config = v.job.config;
      const absl::Status size = CheckDataSize(answer.report.data_bytes, config.training.seq_len, config.data.validation_fraction,
                                              config.data.validation_samples);
      // Too short for one is too short for all: the digests agree.
      if (!size.ok()) {
        return Decision{Finish{JobPhase::kFailed, size.code()},
                        absl::StrFormat("data.path '%s': %s", config.data.path, std::string(size.message()))};
      }
      if (digest.empty()) digest = answer.report.data_digest, digest_node = node.value(), bytes = answer.report.data_bytes;
      continue;
    }
    const std::string sentence = absl::StrCat("node ", node.value(), ": ", complaint);
    // A job that has trained is not given up for a newcomer's folder.
    if (v.run.has_run && v.run.storage.size() > 1) return Decision{LeaveOutNode{node}, sentence};
    return Decision{Finish{JobPhase::kFailed, code}, sentence};
  }
  return std::nullopt;
}

std::optional<Decision> ReachVerdict(const DecideView& v, bool all_else) {
  // Who says nothing accuses nobody: its ranks will say what they see.
  const bool waits = !v.run.reach.unanswered.empty() && v.in_stage() <= v.config.probe.reach_timeout;
  if (waits && all_else) {
    return Decision{KeepOn{},
                    absl::StrCat("looking whether the nodes reach each other; waiting for ",
                                 absl::StrJoin(v.run.reach.unanswered, ", ",
                                               [](std::string* out, const NodeName& node) { out->append(node.value()); }))};
  }
  if (waits || v.run.reach.broken.empty()) return std::nullopt;
  std::map<NodeName, std::string> out = OutOfReach(v.state, v.run);
  if (out.empty()) return std::nullopt;
  std::string reason = absl::StrJoin(out, "; ", [](std::string* text, const auto& entry) {
    absl::StrAppend(text, "node ", entry.first.value(), " is left out: ", entry.second);
  });
  return Decision{LeaveOutUnreached{std::move(out)}, std::move(reason)};
}

}  // namespace motley::coordinator
