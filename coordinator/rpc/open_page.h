// OpenPage: where the page for browsers is, and its key. docs/inside/page.md
#pragma once

#include "absl/status/status.h"
#include "coordinator/core/core.h"
#include "proto/motley/v1/motley.pb.h"

namespace motley::coordinator {

// FAILED_PRECONDITION: the coordinator serves none.
absl::Status OpenPage(Core& core, const v1::OpenPageRequest& request, v1::OpenPageResponse* response);

}  // namespace motley::coordinator
