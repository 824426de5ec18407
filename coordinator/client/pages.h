// Lists that come in pages, as one.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/client/connection.h"

namespace motley::client {

inline int Entries(const v1::ListJobsResponse& page) { return page.jobs_size(); }
inline int Entries(const v1::ListNodesResponse& page) { return page.nodes_size(); }

// All pages of a list, joined, or as many as hold `limit` entries when it is not 0; next_page_token is empty.
template <typename Request, typename Response>
absl::StatusOr<Response> CallForAll(Connection& connection,
                                    grpc::Status (Connection::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                    Request request, int limit = 0) {
  Response all;
  for (;;) {
    request.set_page_size(limit);
    absl::StatusOr<Response> page = connection.Call(method, request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    page->clear_next_page_token();
    all.MergeFrom(*page);
    if (request.page_token().empty()) return all;
    if (limit > 0 && (limit -= Entries(*page)) <= 0) return all;
  }
}

}  // namespace motley::client
