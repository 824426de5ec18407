#include "worker/daemon/frame.h"

#include <gtest/gtest.h>

namespace motley::worker {
namespace {

TEST(Frame, SurvivesAnyCut) {
  const std::string stream = EncodeFrame("hello") + EncodeFrame("") + EncodeFrame(std::string(300, 'x'));
  for (size_t cut = 1; cut < 9; ++cut) {
    FrameDecoder decoder;
    std::vector<std::string> bodies;
    for (size_t at = 0; at < stream.size(); at += cut) {
      decoder.Append(std::string_view(stream).substr(at, cut));
      for (auto frame = decoder.Next(); frame.ok() && frame->has_value(); frame = decoder.Next()) bodies.push_back(**frame);
    }
    EXPECT_EQ(bodies, (std::vector<std::string>{"hello", "", std::string(300, 'x')}));
  }
}

TEST(Frame, RefusesAnOversizedLength) {
  FrameDecoder decoder;
  decoder.Append("\xff\xff\xff\xff");
  EXPECT_EQ(decoder.Next().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace motley::worker
