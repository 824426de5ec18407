#include "coordinator/client/report_command.h"

#include <sysexits.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "coordinator/client/json.h"
#include "coordinator/page/web/page_document.h"
#include "coordinator/page/web/page_text.h"

namespace motley::client {
namespace {

using coordinator::PageJson;

constexpr size_t kMostSteps = 10000, kMostEvents = 1000, kMostLines = 200;

struct ReportFlags {
  std::string job, out;
};

// What a page knows of a job, owned.
struct Known {
  std::map<std::string, std::string> rows;
  std::string history, trace;
  std::map<std::string, std::deque<std::string>> lists;  // as PageDocument

  void Add(const std::string& list, const google::protobuf::Message& message, size_t most) {
    std::deque<std::string>& entries = lists[list];
    entries.push_back(PageJson(message));
    if (entries.size() > most) entries.pop_front();
  }
};

// A stream of the API to its end.
template <typename Message, typename Request>
absl::Status ReadAll(Context& context, Connection& connection,
                     std::unique_ptr<grpc::ClientReader<Message>> (Connection::Stub::*method)(grpc::ClientContext*,
                                                                                              const Request&),
                     Request request, void (Request::*set_cursor)(int64_t), int64_t (Message::*cursor)() const,
                     const std::function<void(const Message&)>& use) {
  typename Connection::Stream<Message> stream;
  stream.open = [&](Connection::Stub& stub, grpc::ClientContext* call, int64_t from) {
    (request.*set_cursor)(from);
    return (stub.*method)(call, request);
  };
  stream.cursor_of = [cursor](const Message& message) { return (message.*cursor)(); };
  stream.use = [&use](const Message& message) {
    use(message);
    return true;
  };
  stream.say = [&context](const std::string& text) { context.Say(text); };
  return connection.Follow(std::move(stream));
}

absl::Status AskNews(Context& context, Connection& connection, const std::string& job, Known* known) {
  v1::WatchJobRequest watch;
  watch.set_job_id(job);
  watch.set_snapshot(true);
  absl::Status status =
      ReadAll<v1::JobUpdate>(context, connection, &Connection::Stub::WatchJob, watch, &v1::WatchJobRequest::set_cursor,
                             &v1::JobUpdate::cursor, [known](const v1::JobUpdate& update) {
                               if (update.has_step()) known->Add("steps", update.step(), kMostSteps);
                             });
  if (!status.ok()) return status;
  v1::ListEventsRequest events;
  events.set_job_id(job);
  status =
      ReadAll<v1::Event>(context, connection, &Connection::Stub::ListEvents, events, &v1::ListEventsRequest::set_after_sequence,
                         &v1::Event::sequence, [known](const v1::Event& event) { known->Add("events", event, kMostEvents); });
  if (!status.ok()) return status;
  v1::TailLogsRequest logs;
  logs.set_job_id(job);
  return ReadAll<v1::LogLine>(context, connection, &Connection::Stub::TailLogs, logs, &v1::TailLogsRequest::set_after_sequence,
                              &v1::LogLine::sequence, [known](const v1::LogLine& line) { known->Add("logs", line, kMostLines); });
}

absl::Status AskState(Connection& connection, const std::string& job, Known* known) {
  v1::GetJobRequest get;
  get.set_job_id(job);
  auto answer = connection.Call(&Connection::Stub::GetJob, get);
  if (!answer.ok()) return answer.status();
  v1::JobSpec spec = answer->job().spec();
  spec.mutable_model()->clear_config_json();
  spec.mutable_planner()->clear_plan_json();
  answer->mutable_job()->clear_spec();
  known->rows["job"] = PageJson(answer->job());
  known->rows["spec"] = PageJson(spec);
  v1::GetHistoryRequest history;
  history.set_job_id(job);
  const auto curve = connection.Call(&Connection::Stub::GetHistory, history);
  if (!curve.ok()) return curve.status();
  known->history = PageJson(curve->history());
  v1::GetPlanRequest get_plan;
  get_plan.set_job_id(job);
  for (const char* field : {"epoch", "plan_json", "explanation", "trace_json"}) get_plan.mutable_fields()->add_paths(field);
  const auto plan = connection.Call(&Connection::Stub::GetPlan, get_plan);
  if (absl::IsNotFound(plan.status())) return absl::OkStatus();  // it has none yet, and no ranks
  if (!plan.ok()) return plan.status();
  known->rows["plan"] = coordinator::PagePlanJson(plan->epoch(), plan->explanation(), plan->plan_json());
  known->trace = plan->trace_json();
  get.set_memory(true);
  get.set_lanes(true);
  auto ranks = connection.Call(&Connection::Stub::GetJob, get);
  if (!ranks.ok()) return ranks.status();
  ranks->clear_job();
  v1::GetJobResponse lanes;
  lanes.mutable_lanes()->Swap(ranks->mutable_lanes());
  known->rows["lanes"] = PageJson(lanes);
  known->rows["memory"] = PageJson(*ranks);
  return absl::OkStatus();
}

std::string DataOf(const std::string& job, const Known& known) {
  coordinator::PageDocument document;
  document.cursor = 1;
  document.rows = known.rows;
  document.history = known.history;
  for (const auto& [list, entries] : known.lists) document.lists[list].assign(entries.begin(), entries.end());
  std::string data = absl::StrCat("{", PageJson("job/" + job), ":", PrintPage(document, "", ""));
  if (!known.trace.empty()) {
    coordinator::PageDocument simulated;
    simulated.cursor = 1;
    simulated.rows["trace"] = known.trace;
    absl::StrAppend(&data, ",", PageJson("simulated/" + job), ":", PrintPage(simulated, "", ""));
  }
  return data + "}";
}

Exit Report(Context& context, const ReportFlags& flags) {
  // -o means a format everywhere else.
  if (flags.out == "json" || flags.out == "text") {
    return {kUsage, absl::StrCat("-o names the file of the report, say -o ", flags.job, ".html; --out ./", flags.out,
                                 " for a file of that name")};
  }
  if (absl::Status status = CheckWritable(flags.out); !status.ok()) return FromOutput(status);
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  Known known;
  if (absl::Status status = AskState(*connection, flags.job, &known); !status.ok()) return FromServer(status);
  if (absl::Status status = AskNews(context, *connection, flags.job, &known); !status.ok()) return FromServer(status);
  const std::string html = coordinator::ReportHtml(flags.job, DataOf(flags.job, known));
  if (absl::Status status = WriteFileDurably(flags.out, html); !status.ok()) return FromOutput(status);
  if (context.json) PrintDocument(context.out, Json{{"job_id", flags.job}, {"file", flags.out}, {"bytes", html.size()}});
  context.err << "the page of job " << flags.job << " is in " << flags.out << "; it asks nobody and holds no key\n";
  return {};
}

}  // namespace

Action AddReport(CLI::App& app) {
  auto flags = std::make_shared<ReportFlags>();
  app.add_option("JOB", flags->job, "the job's id")->required();
  app.add_option("-o,--out", flags->out, "the file, as job.html; it is replaced")->type_name("FILE")->required();
  return [flags](Context& context) { return Report(context, *flags); };
}

}  // namespace motley::client
