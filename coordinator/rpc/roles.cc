#include "coordinator/rpc/roles.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/clean_text.h"

namespace motley::coordinator {
namespace {

struct Grant {
  std::string_view method;
  bool person, worker;
  Need need = Need::kSee;  // of people, where jobs have owners
};

constexpr Grant kGrants[] = {
    {"/motley.v1.Motley/SubmitJob", true, false, Need::kAct},
    {"/motley.v1.Motley/GetJob", true, false},
    {"/motley.v1.Motley/ListJobs", true, false},
    {"/motley.v1.Motley/WatchJob", true, false},
    {"/motley.v1.Motley/StopJob", true, false, Need::kOwn},
    {"/motley.v1.Motley/ResumeJob", true, false, Need::kOwn},
    {"/motley.v1.Motley/DeleteJob", true, false, Need::kOwn},
    {"/motley.v1.Motley/ListNodes", true, false},
    {"/motley.v1.Motley/DrainNode", true, false, Need::kAdmin},
    {"/motley.v1.Motley/MeasureNode", true, false, Need::kAdmin},
    {"/motley.v1.Motley/ProbeMemory", true, false, Need::kAdmin},
    {"/motley.v1.Motley/CreateToken", true, false, Need::kAdmin},
    {"/motley.v1.Motley/ListTokens", true, false, Need::kAdmin},
    {"/motley.v1.Motley/RevokeToken", true, false, Need::kAdmin},
    {"/motley.v1.Motley/ForgetNode", true, false, Need::kAdmin},
    {"/motley.v1.Motley/RotateAuthority", true, false, Need::kAdmin},
    {"/motley.v1.Motley/GetPlan", true, false},
    {"/motley.v1.Motley/GetPlanningInputs", true, false},
    {"/motley.v1.Motley/CheckCluster", true, false, Need::kAct},
    {"/motley.v1.Motley/ListFiles", true, false},
    {"/motley.v1.Motley/LookAtPath", true, false, Need::kAct},
    {"/motley.v1.Motley/ListEvents", true, false},
    {"/motley.v1.Motley/TailLogs", true, false},
    {"/motley.v1.Motley/TraceStep", true, false},
    {"/motley.v1.Motley/Carry", true, false, Need::kOwn},
    {"/motley.v1.Motley/OpenPage", true, false},
    {"/motley.v1.Motley/GetHistory", true, false},
    {"/motley.v1.WorkerService/Session", false, true},
    {"/motley.v1.WorkerService/Join", false, true},
    {"/motley.v1.WorkerService/Carry", false, true},
    {"/grpc.health.v1.Health/Check", true, true},
    {"/grpc.health.v1.Health/Watch", true, false},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", true, false},
};

class Refusal : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

bool Exists(const std::string& method) {
  const std::string name = absl::StrReplaceAll(method.substr(1), {{"/", "."}});
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name) != nullptr;
}

}  // namespace

std::string_view RoleName(Role role) { return role == Role::kPerson ? "people" : "workers"; }

bool IsGranted(Role role, std::string_view method) {
  const auto* grant = std::find_if(std::begin(kGrants), std::end(kGrants), [&](const Grant& g) { return g.method == method; });
  return grant != std::end(kGrants) && (role == Role::kPerson ? grant->person : grant->worker);
}

Need NeedOf(std::string_view method) {
  const auto* grant = std::find_if(std::begin(kGrants), std::end(kGrants), [&](const Grant& g) { return g.method == method; });
  return grant == std::end(kGrants) ? Need::kAdmin : grant->need;
}

std::vector<int> NotGranted(Role role, const std::string& service) {
  std::vector<int> indices;
  const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  for (int i = 0; descriptor != nullptr && i < descriptor->method_count(); ++i) {
    if (!IsGranted(role, absl::StrCat("/", service, "/", descriptor->method(i)->name()))) indices.push_back(i);
  }
  return indices;
}

grpc::ServerGenericBidiReactor* RefusingService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  if (all_) return new Refusal(*all_);
  const std::string method = Quoted(context->method());
  if (context->method().empty() || !Exists(context->method())) {
    return new Refusal(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, absl::StrCat("there is no method ", method)));
  }
  const Role other = role_ == Role::kPerson ? Role::kWorker : Role::kPerson;
  const bool elsewhere = IsGranted(other, context->method());
  return new Refusal(grpc::Status(grpc::StatusCode::PERMISSION_DENIED,
                                  absl::StrCat(method, " is not for ", std::string(RoleName(role_)), ", whose server this is",
                                               elsewhere ? absl::StrCat("; the one for ", std::string(RoleName(other)),
                                                                        " listens on another address (docs/use/security.md)")
                                                         : "")));
}

}  // namespace motley::coordinator
