#include "common/wire/data_summary.h"

#include "common/wire/both_ways.h"

namespace motley::wire {

WIRE_MESSAGE(v1::DataSummary, DataSummary) {
  WIRE_FIELD(bytes, plain.bytes);
  WIRE_FIELD(digest, plain.digest);
  if constexpr (Way::kWrites) {
    proto.set_kind(static_cast<v1::DataSummary::Kind>(plain.kind));
  } else if (v1::DataSummary::Kind_IsValid(proto.kind())) {
    plain.kind = static_cast<DataKind>(proto.kind());
  }
  WIRE_FIELD(tokens, plain.tokens);
  WIRE_FIELD(rows, plain.rows);
  WIRE_FIELD(row_tokens, plain.row_tokens);
  WIRE_FIELD(greatest_token, plain.greatest_token);
  WIRE_FIELD(trained_tokens, plain.trained_tokens);
  WIRE_FIELD(source_bytes, plain.source_bytes);
  WIRE_FIELD(tokenizer, plain.tokenizer);
}

}  // namespace motley::wire
