// TensorBoard's event files: TFRecords of Event messages (tensorboard/compat/proto/event.proto).
#include <isa-l.h>

#include "absl/strings/str_format.h"
#include "proto/tensorboard/event.pb.h"
#include "worker/records/step_format.h"

namespace motley::worker {
namespace {

// A checksum that is stored beside data with checksums of its own is masked: rotated by 15 bits, plus a constant.
uint32_t MaskedCrc32c(const std::string& bytes) {
  const uint32_t crc = ~crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data())),
                                    static_cast<int>(bytes.size()), 0xffffffffu);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename Number>
std::string LittleEndian(Number number) {
  std::string bytes(sizeof(number), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xff);
    number >>= 8;
  }
  return bytes;
}

// Length, its checksum, the bytes, their checksum.
std::string TfRecord(const tensorboard::Event& event) {
  const std::string bytes = event.SerializeAsString();
  const std::string length = LittleEndian<uint64_t>(bytes.size());
  return length + LittleEndian(MaskedCrc32c(length)) + bytes + LittleEndian(MaskedCrc32c(bytes));
}

std::string Head(int64_t first_step, double unix_seconds) {
  tensorboard::Event version, start;
  version.set_wall_time(unix_seconds);
  version.set_file_version("brain.Event:2");
  start.set_wall_time(unix_seconds);
  start.set_step(first_step);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return TfRecord(version) + TfRecord(start);
}

std::string Record(const StepRecord& record) {
  tensorboard::Event event;
  event.set_wall_time(record.unix_seconds);
  event.set_step(record.stats.step);
  for (const StepColumn& column : StepColumns()) {
    const std::optional<double> number = column.value(record);
    if (column.tag.empty() || !number) continue;
    tensorboard::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(std::string(column.tag));
    value->set_simple_value(static_cast<float>(*number));
  }
  return TfRecord(event);
}

// Readers take the files of a folder in the order of their names. By convention a Unix time of ten digits follows
// "tfevents"; nodes have clocks that differ, generations have one order.
std::string FileName(Epoch epoch) { return absl::StrFormat("events.out.tfevents.%010d.motley", epoch.value()); }

}  // namespace

const StepFormat kTensorBoardFormat = {"tb", FileName, Head, Record};

}  // namespace motley::worker
