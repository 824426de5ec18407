// Hello, and how far the store has got.
#include "common/wire/session.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/device/device_ranges.h"
#include "common/wire/device.h"

namespace motley::wire {

v1::StoreMark ToProto(const StoreMark& mark) {
  v1::StoreMark out;
  out.set_store_id(mark.store_id);
  out.set_commits(mark.commits);
  out.set_token(mark.token);
  return out;
}
StoreMark FromProto(const v1::StoreMark& mark) { return {mark.store_id(), mark.commits(), mark.token()}; }

v1::Hello ToProto(const NodeDescription& node) {
  v1::Hello hello;
  hello.set_node(node.name.value());
  hello.set_version(node.version);
  hello.set_incarnation(node.incarnation);
  hello.set_data_address(node.data_address);
  for (const DeviceDescription& device : node.devices) *hello.add_devices() = ToProto(device);
  for (const SeenEpoch& seen : node.newest_epochs) {
    v1::JobEpoch* newest = hello.add_newest_epochs();
    newest->set_job_id(seen.job.value());
    newest->set_epoch(seen.epoch.value());
    newest->set_token(seen.token);
    newest->set_key_id(seen.key_id);
  }
  *hello.mutable_store_mark() = ToProto(node.store_mark);
  hello.set_reach_port(node.reach_port);
  for (const UnusedCard& card : node.unused_cards) {
    v1::UnusedCard* unused = hello.add_unused_cards();
    unused->set_card(card.card);
    unused->set_reason(card.reason);
  }
  hello.set_host_memory_bytes(node.host_memory_bytes);
  hello.set_files_not_held(node.files_not_held);
  hello.set_user(node.user);
  for (const std::string& coordinator : node.coordinators) hello.add_coordinators(coordinator);
  hello.set_term_certificate(node.term_certificate);
  hello.set_protocol(node.protocol);
  hello.set_rank_build(node.rank_build);
  return hello;
}

absl::StatusOr<NodeDescription> FromProto(const v1::Hello& hello) {
  NodeDescription node{NodeName(hello.node()), hello.version(), hello.incarnation(), hello.data_address(), {}, {}, {}, 0};
  for (const v1::DeviceDescription& device : hello.devices()) {
    MOTLEY_ASSIGN_OR_RETURN(DeviceDescription description, FromProto(device));
    MOTLEY_RETURN_IF_ERROR(CheckRanges(description));
    node.devices.push_back(std::move(description));
  }
  for (const v1::JobEpoch& newest : hello.newest_epochs()) {
    node.newest_epochs.push_back({JobId(newest.job_id()), Epoch(newest.epoch()), newest.token(), newest.key_id()});
  }
  node.store_mark = FromProto(hello.store_mark());
  node.reach_port = hello.reach_port();
  for (const v1::UnusedCard& unused : hello.unused_cards()) node.unused_cards.push_back({unused.card(), unused.reason()});
  node.host_memory_bytes = hello.host_memory_bytes();
  node.files_not_held = hello.files_not_held();
  node.user = hello.user();
  for (const std::string& coordinator : hello.coordinators()) node.coordinators.push_back(coordinator);
  node.term_certificate = hello.term_certificate();
  node.protocol = hello.protocol() == 0 ? 1 : hello.protocol();
  node.rank_build = hello.rank_build();
  return node;
}

}  // namespace motley::wire
