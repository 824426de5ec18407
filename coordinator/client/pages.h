// Lists that come in pages, as one.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/client/connection.h"

namespace motley::client {

// All pages of a list, joined; next_page_token is empty.
template <typename Request, typename Response>
absl::StatusOr<Response> CallForAll(Connection& connection,
                                    grpc::Status (Connection::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                    Request request) {
  Response all;
  for (;;) {
    absl::StatusOr<Response> page = connection.Call(method, request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    page->clear_next_page_token();
    all.MergeFrom(*page);
    if (request.page_token().empty()) return all;
  }
}

}  // namespace motley::client
