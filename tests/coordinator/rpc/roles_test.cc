// Every method of every service, at both servers: served where it was granted, refused everywhere else.
#include "coordinator/rpc/roles.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <set>

#include "common/rpc/channel.h"
#include "tests/common/base/patience.h"
#include "tests/coordinator/rpc/cluster.h"

namespace motley::coordinator {
namespace {

class Roles : public ClusterTest {
 protected:
  // What an empty message to the method is answered with; OK also when the stream stays open.
  static grpc::Status Call(const std::string& address, const std::string& method) {
    grpc::GenericStub stub(OpenChannel(address));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + Patience(absl::Seconds(20))));
    grpc::CompletionQueue queue;
    auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    auto stream = stub.PrepareCall(&context, method, &queue);
    stream->StartCall(nullptr);
    next();
    const grpc::Slice empty;
    stream->WriteLast(grpc::ByteBuffer(&empty, 1), grpc::WriteOptions(), nullptr);
    next();
    grpc::ByteBuffer answer;
    stream->Read(&answer, nullptr);
    const bool answered = next();
    if (answered) context.TryCancel();
    grpc::Status status;
    stream->Finish(&status, nullptr);
    next();
    return answered ? grpc::Status::OK : status;
  }
  static bool IsRefused(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::PERMISSION_DENIED || status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
  }
  static std::vector<std::string> Methods() {
    std::vector<std::string> methods;
    for (const char* file :
         {"proto/motley/v1/motley.proto", "proto/motley/v1/worker.proto", "proto/grpc/health/v1/health.proto"}) {
      const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(file);
      if (descriptor == nullptr) ADD_FAILURE() << file;
      for (int s = 0; descriptor != nullptr && s < descriptor->service_count(); ++s) {
        const auto* service = descriptor->service(s);
        for (int m = 0; m < service->method_count(); ++m) {
          methods.push_back(absl::StrCat("/", service->full_name(), "/", service->method(m)->name()));
        }
      }
    }
    methods.push_back("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    return methods;
  }
};

TEST_F(Roles, EveryMethodIsServedWhereItWasGrantedAndNowhereElse) {
  const std::vector<std::string> methods = Methods();
  EXPECT_EQ(methods.size(), 33u) << "a new method needs a grant in roles.cc, and this count";
  for (const std::string& method : methods) {
    EXPECT_TRUE(IsGranted(Role::kPerson, method) || IsGranted(Role::kWorker, method)) << method << " is granted to nobody";
    for (const Role role : {Role::kPerson, Role::kWorker}) {
      const grpc::Status status = Call(role == Role::kPerson ? server_->socket_address() : server_->workers_address(), method);
      EXPECT_EQ(IsRefused(status), !IsGranted(role, method))
          << method << " for " << RoleName(role) << ": " << status.error_code() << " " << status.error_message();
    }
  }
}

TEST_F(Roles, ARefusalSaysWhoseServerThisIs) {
  grpc::Status status = Call(server_->workers_address(), "/motley.v1.Motley/SubmitJob");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_NE(status.error_message().find("'/motley.v1.Motley/SubmitJob' is not for workers"), std::string::npos)
      << status.error_message();
  status = Call(server_->address(), "/motley.v1.Nothing/Here");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_NE(status.error_message().find("there is no method"), std::string::npos) << status.error_message();
}

TEST_F(Roles, WhatTheTableDoesNotHoldIsGrantedToNobody) {
  EXPECT_FALSE(IsGranted(Role::kPerson, "/motley.v1.Motley/NewMethod"));
  EXPECT_FALSE(IsGranted(Role::kWorker, ""));
  EXPECT_EQ(NotGranted(Role::kWorker, "motley.v1.Motley").size(), 27u);
  EXPECT_TRUE(NotGranted(Role::kPerson, "motley.v1.Motley").empty());
}

}  // namespace
}  // namespace motley::coordinator
