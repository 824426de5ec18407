// Hello, and how far the store has got.
#include "common/wire/session.h"

#include "common/device/device_ranges.h"
#include "common/wire/both_ways.h"

namespace motley::wire {

WIRE_MESSAGE(v1::StoreMark, StoreMark) {
  WIRE_FIELD(store_id, plain.store_id);
  WIRE_FIELD(commits, plain.commits);
  WIRE_FIELD(token, plain.token);
}

namespace {

WIRE_MESSAGE(v1::JobEpoch, SeenEpoch) {
  WIRE_STAMP();
  WIRE_FIELD(token, plain.token);
  WIRE_FIELD(key_id, plain.key_id);
}

WIRE_MESSAGE(v1::UnusedCard, UnusedCard) {
  WIRE_FIELD(card, plain.card);
  WIRE_FIELD(reason, plain.reason);
}

}  // namespace

WIRE_CHECKED_MESSAGE(v1::Hello, NodeDescription) {
  WIRE_FIELD(node, plain.name);
  WIRE_FIELD(version, plain.version);
  WIRE_FIELD(incarnation, plain.incarnation);
  WIRE_FIELD(data_address, plain.data_address);
  WIRE_PARTS(devices, plain.devices);
  if constexpr (!Way::kWrites) {
    for (const DeviceDescription& device : plain.devices) way.status.Update(CheckRanges(device));
  }
  WIRE_PARTS(newest_epochs, plain.newest_epochs);
  WIRE_PART(store_mark, plain.store_mark);
  WIRE_FIELD(reach_port, plain.reach_port);
  WIRE_PARTS(unused_cards, plain.unused_cards);
  WIRE_FIELD(host_memory_bytes, plain.host_memory_bytes);
  WIRE_FIELD(files_not_held, plain.files_not_held);
  WIRE_FIELD(user, plain.user);
  WIRE_LIST(coordinators, plain.coordinators);
  WIRE_FIELD(term_certificate, plain.term_certificate);
  WIRE_FIELD(protocol, plain.protocol);
  if constexpr (!Way::kWrites) plain.protocol = plain.protocol == 0 ? 1 : plain.protocol;  // builds that did not say it
  WIRE_FIELD(rank_build, plain.rank_build);
}

}  // namespace motley::wire
