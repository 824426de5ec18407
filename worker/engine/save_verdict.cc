#include "worker/engine/save_verdict.h"

#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/fault.h"
#include "common/base/status_macros.h"

namespace motley::engine {
namespace {

constexpr char kNone[] = "-";

std::string Word(const std::string& text) { return text.empty() ? kNone : text; }
std::string FromWord(const std::string& word) { return word == kNone ? "" : word; }

bool Failed(const std::string& message) { return message.rfind("ok", 0) != 0; }

// Of an entry: "ok <token> <file>".
std::string TokenOf(const std::string& entry) {
  const std::vector<std::string> parts = absl::StrSplit(entry, absl::MaxSplits(' ', 2));
  return parts.size() == 3 && parts[0] == "ok" ? FromWord(parts[1]) : "";
}

absl::Status Blaming(absl::Status status, const DeviceId& device) { return WithBlamedDevice(std::move(status), device.value()); }

// Some ranks' folder is not rank 0's.
absl::Status FoldersDiffer(const std::vector<View>& views, const std::vector<DeviceId>& devices, const std::string& folder) {
  const std::optional<size_t> blamed = WhomToBlame(views, devices);
  const std::string remedy = "; mount checkpoint.folder there, the same on all nodes";
  if (blamed == size_t{0}) {
    return WithFault(
        Blaming(absl::UnavailableError(absl::StrCat("checkpoint on ", devices[0].value(), ": most nodes do not see in ", folder,
                                                    " what this one wrote", remedy)),
                devices[0]),
        Fault::kStorage);
  }
  if (blamed) {
    return WithFault(Blaming(absl::UnavailableError(absl::StrCat("checkpoint on ", devices[*blamed].value(), ": ", folder,
                                                                 " is not the folder of the other nodes", remedy)),
                             devices[*blamed]),
                     Fault::kStorage);
  }
  std::vector<std::string> odd;
  for (size_t r = 0; r < views.size(); ++r) {
    if (views[r] == View::kOther) odd.push_back(devices[r].value());
  }
  return WithFault(
      absl::UnavailableError(absl::StrCat("checkpoint on ", devices[0].value(), ": ", folder, " is not the same folder on ",
                                          absl::StrJoin(odd, ", "), "; mount checkpoint.folder the same on all nodes")),
      Fault::kStorage);
}

}  // namespace

std::string ErrorMessage(const absl::Status& status) {
  return absl::StrCat("error ", static_cast<int>(status.code()), " ", std::string(FaultName(FaultOf(status))), " ",
                      Word(BlamedDeviceOf(status)), " ", status.message());
}

std::string VerdictMessage(const absl::Status& status) { return status.ok() ? "ok" : ErrorMessage(status); }

absl::Status ErrorOf(const std::string& message, const DeviceId& device) {
  if (!Failed(message)) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(message, absl::MaxSplits(' ', 4));
  const std::string begin = absl::StrCat("checkpoint on ", device.value(), ": ");
  if (parts.size() != 5) return absl::InternalError(absl::StrCat(begin, message));
  // A verdict names its device already.
  const bool named = parts[4].rfind("checkpoint on ", 0) == 0;
  const Fault fault = ParseFault(parts[2]).value_or(Fault::kOurs);
  std::string blamed = FromWord(parts[3]);
  if (blamed.empty() && fault == Fault::kNode) blamed = device.value();
  return WithBlamedDevice(WithFault(absl::Status(static_cast<absl::StatusCode>(std::atoi(parts[1].c_str())),
                                                 absl::StrCat(named ? "" : begin, parts[4])),
                                    fault),
                          blamed);
}

std::string EntryMessage(const absl::StatusOr<CheckpointFile>& file, const std::string& token) {
  return file.ok() ? absl::StrCat("ok ", Word(token), " ", FileEntryToJson(*file)) : ErrorMessage(file.status());
}

absl::StatusOr<CheckpointFile> FileOf(const std::string& entry) {
  const std::vector<std::string> parts = absl::StrSplit(entry, absl::MaxSplits(' ', 2));
  return FileEntryFromJson(parts.size() == 3 ? parts[2] : "");
}

std::optional<size_t> WhomToBlame(const std::vector<View>& views, const std::vector<DeviceId>& devices) {
  struct Node {
    View view = View::kSame;
    size_t first = 0;  // of its ranks that stands so
  };
  std::map<NodeName, Node> nodes;
  for (size_t r = 0; r < views.size(); ++r) {
    Node& node = nodes.try_emplace(NodeOf(devices[r]), Node{View::kSame, r}).first->second;
    if (node.view == View::kSame && views[r] != View::kSame) node = {views[r], r};
  }
  size_t others = 0, wrong = 0, first = views.size();
  for (const auto& [name, node] : nodes) {
    others += node.view == View::kOther;
    wrong += node.view != View::kSame;
    if (node.view != View::kSame) first = std::min(first, node.first);
  }
  if (nodes.size() < 3 || wrong == 0) return std::nullopt;
  if (2 * wrong < nodes.size()) return first;
  if (2 * others > nodes.size()) return 0;
  return std::nullopt;
}

bool LiesWithRank0(const std::vector<std::string>& entries, size_t rank) {
  if (Failed(entries[0])) return absl::IsResourceExhausted(ErrorOf(entries[0], DeviceId()));
  return TokenOf(entries[rank]) == TokenOf(entries[0]);
}

absl::Status VerdictOf(const std::vector<std::string>& entries, const std::vector<DeviceId>& devices, const std::string& folder) {
  const std::string token = TokenOf(entries[0]);
  std::vector<View> views;
  std::vector<absl::Status> errors;
  bool differ = false;
  absl::Status first_error;
  for (size_t r = 0; r < entries.size(); ++r) {
    const absl::Status error = ErrorOf(entries[r], devices[r]);
    if (first_error.ok()) first_error = error;
    errors.push_back(error);
    // Where rank 0 failed there may be no token to see.
    const bool other = error.ok() && errors[0].ok() && TokenOf(entries[r]) != token;
    differ |= other;
    const bool failed = !error.ok() && !absl::IsResourceExhausted(error);
    views.push_back(other ? View::kOther : failed ? View::kFailed : View::kSame);
  }
  if (first_error.ok() && !differ) return absl::OkStatus();
  const std::optional<size_t> blamed = WhomToBlame(views, devices);
  if (blamed && !errors[*blamed].ok()) return Blaming(errors[*blamed], devices[*blamed]);
  if (!first_error.ok() && !blamed) return first_error;
  return FoldersDiffer(views, devices, folder);
}

absl::Status NotAllSeen(const std::vector<size_t>& missing, const std::vector<DeviceId>& devices, const std::string& folder) {
  if (missing.empty()) return absl::OkStatus();
  std::vector<View> views(devices.size(), View::kSame);
  for (const size_t rank : missing) views[rank] = View::kOther;
  return FoldersDiffer(views, devices, folder);
}

}  // namespace motley::engine
