#include "coordinator/rpc/look_at_path.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/files.h"
#include "coordinator/members/path_looks.h"
#include "coordinator/rpc/absolute_path.h"

namespace motley::coordinator {
namespace {

// Nodes read each.
constexpr int kMostSampled = 64;

v1::PathOnNodes ViewOf(const PathLook& look) {
  v1::PathOnNodes view;
  for (const auto& [name, answer] : look.answers) {
    v1::PathOnNode* const node = view.add_nodes();
    node->set_node(name.value());
    if (!answer) continue;
    node->set_sampled(static_cast<v1::Sampled>(answer->sampled));
    node->set_error(answer->error);
  }
  return view;
}

}  // namespace

absl::StatusOr<Pull> LookAtPathSource::Next(Core& core, v1::LookAtPathUpdate* out) {
  if (done_) return Pull::kEnd;
  if (ticket_ == nullptr) {
    MOTLEY_RETURN_IF_ERROR(CheckAbsolutePath("path", request_.path()));
    if (request_.path().empty()) return absl::InvalidArgumentError("path is required");
    if (request_.sample().blocks_size() > kMostSampled) {
      return absl::InvalidArgumentError(absl::StrCat("sample.blocks must be at most ", kMostSampled));
    }
    ticket_ = BeginPathLook(core, request_.path(), wire::FromProto(request_.sample()));
    if (!IsOver(core, *FindPathLook(core, ticket_))) {
      out->set_doing("asking the nodes");
      return Pull::kMessage;
    }
  }
  const PathLook& look = *FindPathLook(core, ticket_);
  if (!IsOver(core, look)) return Pull::kWait;
  *out->mutable_result() = ViewOf(look);
  done_ = true;
  ticket_.reset();
  return Pull::kMessage;
}

}  // namespace motley::coordinator
