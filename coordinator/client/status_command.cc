#include "coordinator/client/status_command.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clean_text.h"
#include "common/base/count.h"
#include "common/base/ids.h"
#include "common/session/host_lateness.h"
#include "common/session/loss_text.h"
#include "common/wire/transport.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/screen.h"
#include "coordinator/client/table.h"
#include "coordinator/client/transport_lines.h"

namespace motley::client {
namespace {

constexpr size_t kIndent = 12;  // the values' column

// "1 638 400".
std::string Grouped(int64_t value) {
  std::string digits = absl::StrCat(value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), " ");
  return digits;
}

void PrintStep(const v1::Job& job, std::ostream& out) {
  const v1::StepRecord& s = job.last_step();
  out << absl::StrFormat("loss        %s, gradient norm %s, learning rate %.2e\n", LossText(s.loss()), NormText(s.grad_norm()),
                         s.lr());
  if (s.has_validation_loss()) out << "validation  loss " << ValidationText(s) << "\n";
  out << "speed       " << FormatRate(s.tokens_per_second()) << ", " << FormatSeconds(s.step_seconds()) << " a step";
  if (s.predicted_step_seconds() > 0) {
    out << absl::StrFormat(" (predicted %s, %+.1f %%)", FormatSeconds(s.predicted_step_seconds()),
                           (s.step_seconds() / s.predicted_step_seconds() - 1) * 100);
  }
  out << absl::StrFormat("\nmemory      %.0f %% of the fullest device's (%s)\n", s.peak_memory_share() * 100,
                         FormatBytes(s.peak_memory_bytes()));
  if (s.host_memory_bytes() > 0 || s.planned_host_memory_bytes() > 0) {
    out << "host memory " << FormatBytes(s.host_memory_bytes()) << " for what waits there (planned "
        << FormatBytes(s.planned_host_memory_bytes()) << "), of all ranks together\n";
  }
}

// What goes by which transport, in the column of the values.
void PrintTransports(const std::vector<TransportUse>& uses, std::ostream& out, const Screen& screen) {
  std::vector<std::string> lines = TransportLines(uses, TransportsAre::kFound);
  if (const std::string surprise = TransportSurprise(uses); !surprise.empty()) lines.push_back(surprise);
  std::string label = "transport";
  for (const std::string& text : lines) {
    out << Fold(absl::StrCat(label, std::string(kIndent - label.size(), ' '), CleanLine(text)), screen.width,
                label.empty() ? 2 : kIndent)
        << "\n";
    label.clear();
  }
}

// Of one that lies on the nodes' disks: whether the loss of a disk does no harm.
std::string Safety(const v1::Job& job) {
  const v1::CheckpointSection& checkpoint = job.spec().checkpoint();
  if (checkpoint.storage() != "local" || job.newest_checkpoint().empty()) return "";
  if (job.safe_checkpoint() == job.newest_checkpoint()) {
    return checkpoint.copies() > 0 ? ", safe" : ", on its nodes' disks alone (checkpoint.copies = 0)";
  }
  return job.safe_checkpoint().empty() ? "; none is safe yet: the loss of a disk would lose it"
                                       : absl::StrCat("; the newest that is safe is ", CleanLine(job.safe_checkpoint()));
}

void Print(const v1::GetJobResponse& response, std::ostream& out, const Screen& screen) {
  const v1::Job& job = response.job();
  const auto line = [&](const std::string& text) { out << Fold(text, screen.width, kIndent) << "\n"; };
  const v1::TrainingSection& training = job.spec().training();
  const std::string state = FormatState(job.state());
  const std::string name = job.spec().name().empty() ? "" : absl::StrCat(" (", CleanLine(job.spec().name()), ")");
  line(absl::StrCat("job         ", job.id(), name));
  const std::string reason = job.reason().empty() ? "" : absl::StrCat(": ", CleanLine(job.reason()));
  const std::string said = Fold(absl::StrCat("state       ", state, reason), screen.width, kIndent);
  out << said.substr(0, kIndent) << Painted(screen, state, state) << said.substr(kIndent + state.size()) << "\n";
  out << "step        " << job.step() << " of " << training.steps();
  if (job.epoch() > 0) out << ", generation " << job.epoch() << " of its plan";
  out << "\n";
  const int64_t step_tokens = training.global_batch_size() * training.seq_len();
  if (job.step() > 0 && step_tokens > 0) {
    const int64_t seen = job.step() * step_tokens;
    out << "tokens      " << Grouped(seen) << " of " << Grouped(training.steps() * step_tokens) << " seen";
    if (job.training_tokens() > 0)
      out << absl::StrFormat(", %.2f passes over the data",
                             static_cast<double>(seen) / static_cast<double>(job.training_tokens()));
    out << "\n";
  }
  // What an earlier generation did says nothing of the steps to come.
  const bool is_its_step = job.last_step().step() == job.step();
  const bool fresh = job.has_last_step() && (HasEnded(job.state()) ? is_its_step : job.last_step().epoch() == job.epoch());
  if (job.has_last_step() && !fresh) {
    line(absl::StrCat("last step   ", job.last_step().step(), " of generation ", job.last_step().epoch(), "; generation ",
                      job.epoch(), " has made none yet",
                      job.step() < job.last_step().step() ? " and repeats those after its checkpoint" : ""));
  }
  if (fresh) PrintStep(job, out);
  const std::string late = HostLateness(job.last_step().lateness_seconds(), job.last_step().step_seconds());
  if (fresh && !late.empty()) line(absl::StrCat("host        ", late));
  if (fresh && !HasEnded(job.state())) {
    line(absl::StrCat("time        ", FormatSeconds(job.last_step().elapsed_seconds()), " gone, about ",
                      FormatSeconds(job.last_step().remaining_seconds()), " left"));
  }
  PrintTransports(wire::FromProto(response.transports()), out, screen);
  // Whoever resumes a job puts it at the queue's end: the time of its submission is this one then.
  const bool resumed = job.started_unix_ms() > 0 && job.submitted_unix_ms() > job.started_unix_ms();
  out << (resumed ? "resumed     " : "submitted   ") << FormatTime(job.submitted_unix_ms())
      << (job.owner().empty() ? "" : " by " + CleanLine(job.owner())) << "\n";
  out << "started     " << FormatTime(job.started_unix_ms()) << "\n";
  out << "finished    " << FormatTime(job.finished_unix_ms()) << "\n";
  line(absl::StrCat("checkpoint  ", job.newest_checkpoint().empty() ? "none yet" : CleanLine(job.newest_checkpoint()),
                    Safety(job)));
  if (job.has_copying()) {
    const v1::CopyProgress& copying = job.copying();
    const std::string limit =
        copying.bytes_per_second() > 0 ? absl::StrCat(", at most ", FormatBytes(copying.bytes_per_second()), "/s a node") : "";
    line(absl::StrCat("copying     ", CleanLine(copying.checkpoint()), ", ", FormatBytes(copying.bytes_here()), " of ",
                      FormatBytes(copying.bytes()), limit));
  }
}

// "-": nobody measures it, nothing was planned, or there is no limit.
void PrintMemory(const v1::GetJobResponse& response, std::ostream& out, const Screen& screen) {
  const auto cell = [](bool known, int64_t bytes) { return known ? FormatBytes(bytes) : std::string("-"); };
  Table table({"RANK", "DEVICE", "TIER", "PURPOSE", "PLANNED", "MEASURED", "LEFT"});
  for (const v1::RankMemory& rank : response.memory()) {
    for (const v1::MemoryUse& use : rank.uses()) {
      if (use.measured_bytes() == 0 && !use.has_left_bytes() && use.planned_bytes() == 0) continue;
      table.Add({absl::StrCat(rank.rank()), rank.device(), use.tier(), use.purpose(),
                 cell(use.has_planned_bytes(), use.planned_bytes()), cell(use.has_measured_bytes(), use.measured_bytes()),
                 cell(use.has_left_bytes(), use.left_bytes())});
    }
  }
  table.Print(out, screen);
  for (const v1::RankMemory& rank : response.memory()) {
    if (rank.usable_memory_bytes() == 0) continue;
    const std::string all = rank.memory_bytes() > 0 ? absl::StrCat(" of its ", FormatBytes(rank.memory_bytes())) : "";
    const bool ran_out = rank.memory_corrections() > 0;  // else a probe found it
    out << Fold(CleanLine(absl::StrCat(rank.device(), ran_out ? " ran out of memory" : " has less memory by its probe",
                                       ": plans count on ", FormatBytes(rank.usable_memory_bytes()), all,
                                       ran_out ? absl::StrCat(", corrected ", Count(rank.memory_corrections(), "time")) : "",
                                       "; `motley node measure ", NodeOf(DeviceId(rank.device())).value(), "` takes that back")),
                screen.width, 0)
        << "\n";
  }
}

Exit Status(Context& context, const std::string& id, bool memory) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::GetJobRequest request;
  request.set_job_id(id);
  request.set_memory(memory);
  auto response = connection->Call(&Connection::Stub::GetJob, request);
  if (!response.ok()) return FromServer(response.status());
  if (context.json) {
    Json document = ToJson(response->job());
    const Json all = ToJson(*response);
    document["transports"] = all["transports"];
    document["memory"] = memory ? all["memory"] : Json(nullptr);
    PrintDocument(context.out, document);
  } else if (memory) {
    PrintMemory(*response, context.out, context.screen);
  } else {
    Print(*response, context.out, context.screen);
  }
  return {};
}

}  // namespace

Action AddStatus(CLI::App& app) {
  struct Asked {
    std::string id;
    bool memory = false;
  };
  auto asked = std::make_shared<Asked>();
  app.add_option("JOB", asked->id, "the job's id")->required();
  app.add_flag("--memory", asked->memory, "by rank, tier and purpose: what is planned, measured, left");
  return [asked](Context& context) { return Status(context, asked->id, asked->memory); };
}

}  // namespace motley::client
