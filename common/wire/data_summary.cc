#include "common/wire/data_summary.h"

namespace motley::wire {

v1::DataSummary ToProto(const DataSummary& summary) {
  v1::DataSummary proto;
  proto.set_bytes(summary.bytes);
  proto.set_digest(summary.digest);
  proto.set_kind(static_cast<v1::DataSummary::Kind>(summary.kind));
  proto.set_tokens(summary.tokens);
  proto.set_rows(summary.rows);
  proto.set_row_tokens(summary.row_tokens);
  proto.set_greatest_token(summary.greatest_token);
  proto.set_trained_tokens(summary.trained_tokens);
  proto.set_source_bytes(summary.source_bytes);
  proto.set_tokenizer(summary.tokenizer);
  return proto;
}

DataSummary FromProto(const v1::DataSummary& proto) {
  const bool known = v1::DataSummary::Kind_IsValid(proto.kind());
  return {.bytes = proto.bytes(),
          .digest = proto.digest(),
          .kind = known ? static_cast<DataKind>(proto.kind()) : DataKind::kText,
          .tokens = proto.tokens(),
          .rows = proto.rows(),
          .row_tokens = proto.row_tokens(),
          .greatest_token = proto.greatest_token(),
          .trained_tokens = proto.trained_tokens(),
          .source_bytes = proto.source_bytes(),
          .tokenizer = proto.tokenizer()};
}

}  // namespace motley::wire
