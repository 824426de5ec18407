#include "coordinator/client/list_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/session/loss_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/pages.h"
#include "coordinator/client/table.h"
#include "coordinator/client/whole_number.h"

namespace motley::client {
namespace {

std::vector<std::string> StateNames() {
  std::vector<std::string> names;
  for (int state = v1::JOB_STATE_QUEUED; state <= v1::JobState_MAX; ++state) names.push_back(FormatState(v1::JobState(state)));
  return names;
}

struct ListFlags {
  std::vector<std::string> states;
  int limit = 0;
};

// A job in a list: what it was asked for is in `motley status`.
Json Brief(const v1::Job& job) {
  Json json = ToJson(job);
  json.erase("spec");
  json["name"] = job.spec().name();
  json["steps"] = job.spec().training().steps();
  return json;
}

// The newest so many that are asked for, oldest first as always.
Exit List(Context& context, const ListFlags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  v1::ListJobsRequest request;
  for (const std::string& state : flags.states) {
    v1::JobState value;
    v1::JobState_Parse(absl::StrCat("JOB_STATE_", absl::AsciiStrToUpper(state)), &value);  // the parser has checked it
    request.add_states(value);
  }
  request.set_newest_first(flags.limit > 0);
  auto response = CallForAll(*connection, &Connection::Stub::ListJobs, request, flags.limit);
  if (!response.ok()) return FromServer(response.status());
  if (flags.limit > 0) std::reverse(response->mutable_jobs()->begin(), response->mutable_jobs()->end());
  if (context.json) {
    Json jobs = Json::array();
    for (const v1::Job& job : response->jobs()) jobs.push_back(Brief(job));
    PrintDocument(context.out, Json{{"jobs", jobs}});
    return {};
  }
  if (response->jobs().empty()) {
    context.out << "no jobs; motley submit FILE starts one\n";
    return {};
  }
  const auto& jobs = response->jobs();
  const bool owned = std::any_of(jobs.begin(), jobs.end(), [](const v1::Job& job) { return !job.owner().empty(); });
  const auto row = [owned](std::vector<std::string> cells, const std::string& owner) {
    if (owned) cells.insert(cells.begin() + 2, owner.empty() ? "-" : owner);
    return cells;
  };
  Table table(row({"JOB", "NAME", "STATE", "STEP", "LOSS", "GENERATION", "SUBMITTED", "REASON"}, "OWNER"));
  for (const v1::Job& job : jobs) {
    table.Add(
        row({job.id(), job.spec().name(), FormatState(job.state()), absl::StrCat(job.step(), "/", job.spec().training().steps()),
             job.has_last_step() && job.last_step().step() == job.step() ? LossText(job.last_step().loss()) : "-",
             absl::StrCat(job.epoch()), FormatTime(job.submitted_unix_ms()), job.reason()},
            job.owner()));
  }
  table.Spare({"GENERATION", "NAME", "SUBMITTED"}).Print(context.out, context.screen);
  return {};
}

}  // namespace

Action AddList(CLI::App& app) {
  auto flags = std::make_shared<ListFlags>();
  app.add_option("--state", flags->states, "only jobs in this state; may be given again")
      ->type_name("STATE")
      ->allow_extra_args(false)
      ->check(CLI::IsMember(StateNames()));
  app.add_option("--limit", flags->limit, "only the newest so many")->type_name("N")->check(WholeFrom(1));
  return [flags](Context& context) { return List(context, *flags); };
}

}  // namespace motley::client
