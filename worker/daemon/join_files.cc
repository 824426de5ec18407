#include "worker/daemon/join_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/address.h"
#include "common/base/clean_text.h"

namespace motley::worker {
namespace {

// A basic string of TOML: its escapes are JSON's.
std::string Toml(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// systemd takes a path apart at blanks and replaces what begins with '%'. '-': it need not be there.
std::string UnitPath(const std::string& path) {
  return absl::StrCat("\"-", absl::StrReplaceAll(path, {{"\\", "\\\\"}, {"\"", "\\\""}, {"%", "%%"}}), "\"");
}

std::string OneOrMore(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return Toml(texts[0]);
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(Toml(text));
  return absl::StrCat("[", absl::StrJoin(all, ", "), "]");
}

}  // namespace

std::string WorkerToml(const JoinedNode& node) {
  std::vector<std::string> roots;
  for (const std::string& root : node.roots) roots.push_back(Toml(root));
  std::string text =
      absl::StrCat("# Written by motley-worker --join. Every key is in docs/use/worker.md.\n\n[worker]\nname = ", Toml(node.name),
                   "\ncoordinator = ", OneOrMore(node.coordinators), "\nidentity = ", Toml(node.identity),
                   "   # key and certificate of this node\n", "data_address = ", Toml(node.data_address),
                   "   # of the interface over which ranks exchange tensors\n", "metrics = \"127.0.0.1:7072\"\n");
  if (!IsLoopback(node.data_address)) {
    absl::StrAppend(&text,
                    "# What ranks send each other is not encrypted: use a network that you trust, or WireGuard's address above.\n"
                    "insecure = true\n");
  }
  absl::StrAppend(
      &text, "\n# Jobs may read and write beneath these folders and nowhere else; without any the worker refuses every job.\n",
      "[files]\nroots = [", absl::StrJoin(roots, ", "), "]\n\n",
      "# Without any [[device]] every NVIDIA card of the node is offered, and where there is none one CPU.\n");
  return text;
}

std::string UnitDropIn(const std::vector<std::string>& folders) {
  std::string text = "# Written by motley-worker --join: [files] roots and identity of worker.toml.\n[Service]\n";
  for (const std::string& folder : folders) absl::StrAppend(&text, "ReadWritePaths=", UnitPath(folder), "\n");
  return text;
}

absl::Status CheckKept(const WorkerConfig& there, const JoinedNode& node, const std::string& path) {
  const auto differs = [&](const char* key, const std::string& has, const std::string& wants) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is there already and has worker.", key, " = ", Quoted(has),
                                                      ", not ", Quoted(wants),
                                                      "; change or remove it, or give --config another name"));
  };
  if (there.name != node.name) return differs("name", there.name, node.name);
  if (std::find(there.coordinators.begin(), there.coordinators.end(), node.coordinators.front()) == there.coordinators.end())
    return differs("coordinator", absl::StrJoin(there.coordinators, ", "), node.coordinators.front());
  if (IdentityFolderOf(there) != node.identity) return differs("identity", IdentityFolderOf(there), node.identity);
  return absl::OkStatus();
}

}  // namespace motley::worker
