#include "coordinator/client/open_command.h"

#include <spawn.h>
#include <sysexits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/address.h"
#include "common/base/files.h"
#include "coordinator/client/json.h"

extern char** environ;

namespace motley::client {
namespace {

struct OpenFlags {
  std::string job;
  bool only_print = false;
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Where a browser of the coordinator's machine finds it: whoever listens on all addresses does on this one, too.
HostPort Reachable(const std::string& address) {
  absl::StatusOr<HostPort> parsed = ParseHostPort("", address, 0);
  if (!parsed.ok()) return {address, 0};
  if (parsed->host == "0.0.0.0" || parsed->host == "::") parsed->host = "127.0.0.1";
  return *parsed;
}

// A page that leads to the address, which only this account reads: what a browser is started with, all accounts can. Empty: there
// is no place for it.
std::string LeadTo(const std::string& url) {
  const std::string folder = Variable("XDG_RUNTIME_DIR");
  if (folder.empty()) return "";
  const std::string path = folder + "/motley-page.html";
  const std::string html = absl::StrCat("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=", url, "\">\n");
  return ReplaceFileDurably(path, html, 0600).ok() ? path : "";
}

// Leaves the browser to itself. False: it cannot be started.
bool ShowInBrowser(const std::string& url) {
  std::string program = "xdg-open", path = LeadTo(url);
  char* words[] = {program.data(), path.data(), nullptr};
  pid_t child = 0;
  return !path.empty() && posix_spawnp(&child, program.c_str(), nullptr, nullptr, words, environ) == 0;
}

Exit Open(Context& context, const OpenFlags& flags) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  if (!flags.job.empty()) {
    v1::GetJobRequest request;
    request.set_job_id(flags.job);
    const auto job = connection->Call(&Connection::Stub::GetJob, request);
    if (!job.ok()) return FromServer(job.status());
  }
  const auto page = connection->Call(&Connection::Stub::OpenPage, v1::OpenPageRequest());
  if (!page.ok()) return FromServer(page.status());
  const HostPort at = Reachable(page->address());
  const std::string host_port = ToText(at);
  const std::string url =
      absl::StrCat("http://", host_port, "/#", page->key(), flags.job.empty() ? "" : absl::StrCat("/job/", flags.job));
  if (context.json) {
    PrintDocument(context.out, Json{{"url", url}, {"address", page->address()}, {"key", page->key()}});
    return {};
  }
  context.out << url << std::endl;
  // By TCP the coordinator may be another machine's, whose port stands for something else here.
  const bool is_here = absl::StartsWith(context.coordinator, "unix:");
  const bool has_display = is_here && (!Variable("DISPLAY").empty() || !Variable("WAYLAND_DISPLAY").empty());
  if (flags.only_print) return {};
  if (has_display && ShowInBrowser(url)) {
    context.Say("a browser was asked to show it; if it shows nothing, open the address above");
    return {};
  }
  // "client-address port server-address port"
  const std::vector<std::string> ssh = absl::StrSplit(Variable("SSH_CONNECTION"), ' ');
  const std::string machine = ssh.size() == 4 ? ssh[2] : "THIS-MACHINE";
  context.Say(
      absl::StrCat("no browser was started. On the coordinator's machine the address opens as it is; on another one: ssh -L ",
                   at.port, ":", host_port, " ", machine, ", and the same address there. Whoever has it sees jobs, paths ",
                   "and logs: give it to nobody else"));
  return {};
}

}  // namespace

Action AddOpen(CLI::App& app) {
  auto flags = std::make_shared<OpenFlags>();
  app.add_option("JOB", flags->job, "the job's page; without it, the cluster's");
  app.add_flag("--print", flags->only_print, "only print the address");
  return [flags](Context& context) { return Open(context, *flags); };
}

}  // namespace motley::client
