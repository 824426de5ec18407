#include "coordinator/client/list_command.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/pages.h"

namespace motley::client {
namespace {

Exit List(Context& context) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  auto response = CallForAll(*connection, &Connection::Stub::ListJobs, v1::ListJobsRequest());
  if (!response.ok()) return FromServer(response.status());
  if (context.json) {
    Json list = ToJson(*response);
    list.erase("next_page_token");
    PrintDocument(context.out, list);
    return {};
  }
  if (response->jobs().empty()) {
    context.out << "no jobs; motley submit FILE starts one\n";
    return {};
  }
  Table table({"JOB", "NAME", "STATE", "STEP", "LOSS", "EPOCH", "SUBMITTED", "REASON"});
  for (const v1::Job& job : response->jobs()) {
    table.Add({job.id(), job.spec().name(), FormatState(job.state()),
               absl::StrCat(job.step(), "/", job.spec().training().steps()),
               job.has_last_step() ? absl::StrFormat("%.4f", job.last_step().loss()) : "-", absl::StrCat(job.epoch()),
               FormatTime(job.submitted_unix_ms()), job.reason()});
  }
  table.Print(context.out);
  return {};
}

}  // namespace

Action AddList(CLI::App&) { return List; }

}  // namespace motley::client
