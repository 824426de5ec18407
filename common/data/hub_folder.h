// A download folder as HuggingFace's hub has it: blobs/DIGEST, refs/BRANCH, and snapshots/REVISION/NAME, links to the blobs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace motley {

// What a folder holds that lies beneath the data's, as far as it matters here.
struct HubFolder {
  std::vector<std::string> names;      // of its entries
  std::vector<std::string> blobs;      // of the entries of "blobs"; empty: there is no such folder
  std::vector<std::string> revisions;  // of the entries of "snapshots"
};

// blobs named by digests, with snapshots beside them.
bool IsHubFolder(const HubFolder& folder);
// Its entries that hold no file of their own: blobs and refs.
bool IsHubsOwn(const std::string& name);
// INVALID_ARGUMENT where it holds several revisions of one data set, which mostly have the same text: names them.
absl::Status CheckOneRevision(const std::string& path, const HubFolder& folder);

}  // namespace motley
