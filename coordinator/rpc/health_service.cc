#include "coordinator/rpc/health_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clean_text.h"
#include "coordinator/rpc/reactors.h"

namespace motley::coordinator {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The state once; it ends with the process.
class HealthSource : public StreamSource<HealthCheckResponse> {
 public:
  explicit HealthSource(bool known) : known_(known) {}
  absl::StatusOr<Pull> Next(Core&, HealthCheckResponse* out) override {
    if (std::exchange(told_, true)) return Pull::kWait;
    out->set_status(known_ ? HealthCheckResponse::SERVING : HealthCheckResponse::SERVICE_UNKNOWN);
    return Pull::kMessage;
  }
  Topic topic() const override { return {NewsKind::kEvents, JobId()}; }

 private:
  const bool known_;
  bool told_ = false;
};

}  // namespace

HealthService::HealthService(TaskPoster loop, Core& core, BusyPeers& busy, Role role, std::string service)
    : loop_(loop), core_(core), busy_(busy), service_(std::move(service)) {
  for (const int method : NotGranted(role, grpc::health::v1::Health::service_full_name())) MarkMethodGeneric(method);
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context, const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  return new UnaryReactor(loop_, busy_, *context, [this, request, response]() -> absl::Status {
    if (!Knows(request->service())) {
      return absl::NotFoundError(absl::StrCat("service ", Quoted(request->service()), " is not served here"));
    }
    response->set_status(HealthCheckResponse::SERVING);
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(grpc::CallbackServerContext* context,
                                                                    const HealthCheckRequest* request) {
  return new StreamReactor<HealthCheckResponse>(loop_, core_, busy_, *context,
                                                std::make_unique<HealthSource>(Knows(request->service())));
}

}  // namespace motley::coordinator
