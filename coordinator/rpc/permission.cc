#include "coordinator/rpc/permission.h"

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "common/base/logging.h"
#include "coordinator/rpc/roles.h"

namespace motley::coordinator {
namespace {

std::string NameOf(std::string_view method) { return std::string(method.substr(method.rfind("/") + 1)); }

absl::Status Denied(std::string_view method, const std::string& why) {
  return absl::PermissionDeniedError(absl::StrCat(NameOf(method), ": ", why));
}

absl::Status CheckOwner(const ClusterState& state, const Person& person, std::string_view method, const std::string& id) {
  const auto job = state.jobs.find(JobId(id));
  if (job == state.jobs.end() || job->second.owner_uid == static_cast<int64_t>(*person.uid)) return absl::OkStatus();
  const std::string whose =
      job->second.owner_uid < 0 ? "a job of nobody that is known" : absl::StrCat(job->second.owner, "'s job");
  return Denied(method, absl::StrCat(id, " is ", whose, ", and you are ", person.name,
                                     "; its owner may do that, and members of group ", kAdminGroup));
}

}  // namespace

absl::Status CheckPermission(const ClusterState& state, const Person& person, std::string_view method, const std::string& job) {
  const Need need = NeedOf(method);
  if (need == Need::kSee || person.admin) return absl::OkStatus();
  if (!person.uid) {
    return Denied(method, "who comes by TCP is not known and may only look; use the coordinator's Unix socket (server.socket)");
  }
  if (need == Need::kAdmin) {
    return Denied(method, absl::StrCat("you are ", person.name, "; that is for members of group ", kAdminGroup));
  }
  return need == Need::kOwn ? CheckOwner(state, person, method, job) : absl::OkStatus();
}

std::string AuditLine(const Person& person, std::string_view method, const std::string& about, const absl::Status& status) {
  return absl::StrCat("audit: ", person.uid ? absl::StrCat(person.name, " (", *person.uid, ")") : "somebody by TCP", " ",
                      NameOf(method), about.empty() ? "" : absl::StrCat(" ", CleanLine(about)), ": ",
                      status.ok() ? "done" : absl::StatusCodeToString(status.code()));
}

void Audit(const Person& person, std::string_view method, const std::string& about, const absl::Status& status) {
  if (NeedOf(method) != Need::kSee) LogInfo(AuditLine(person, method, about, status));
}

}  // namespace motley::coordinator
