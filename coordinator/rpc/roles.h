// Who may call what: one table. A role comes from the server by which a call came.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace motley::coordinator {

enum class Role { kPerson, kWorker };

std::string_view RoleName(Role role);  // "people", "workers"

// `method` as gRPC names it: "/motley.v1.Motley/SubmitJob". What the table does not hold is granted to nobody.
bool IsGranted(Role role, std::string_view method);
// What a person must be for a method: anybody who gets in, somebody who is known, the job's owner, one who looks after the
// cluster.
enum class Need { kSee, kAct, kOwn, kAdmin };
Need NeedOf(std::string_view method);
// Indices, within a service of the generated code, of the methods that the role was not granted. A server hands those to its
// RefusingService (grpc::Service::MarkMethodGeneric).
std::vector<int> NotGranted(Role role, const std::string& service);

// Answers every call that a server has no granted method for: PERMISSION_DENIED for a method of somebody else, which is named;
// UNIMPLEMENTED for one that does not exist.
class RefusingService : public grpc::CallbackGenericService {
 public:
  explicit RefusingService(Role role) : role_(role) {}
  // Every call by this, whatever it is for.
  explicit RefusingService(grpc::Status all) : role_(Role::kWorker), all_(std::move(all)) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  const Role role_;
  const std::optional<grpc::Status> all_;
};

}  // namespace motley::coordinator
