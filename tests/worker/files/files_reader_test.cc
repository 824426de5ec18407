#include "worker/files/files_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/worker/files/files_giver.h"

namespace motley::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Writer = FilesGiver::Writer;

class FilesReaderTest : public ::testing::Test {
 protected:
  absl::Status Read(const CheckpointHolder& holder, const std::vector<int64_t>& blocks) {
    return ReadBlocks(holder, reading_, "rank-0.bin", blocks, [&](int64_t block, std::string_view bytes) {
      taken_.push_back(block);
      last_ = std::string(bytes);
      return take_;
    });
  }
  absl::Status Read(const FilesGiver& giver, const std::vector<int64_t>& blocks) { return Read(giver.Holder("b"), blocks); }
  // Of one that answers so, two blocks.
  void ExpectLie(const std::function<void(Writer&)>& answer, const std::string& why) {
    taken_.clear();
    const FilesGiver giver([&](grpc::ServerContext&, const v1::ReadRequest&, Writer& writer) {
      answer(writer);
      return grpc::Status::OK;
    });
    const absl::Status status = Read(giver, {4, 6});
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), StartsWith("node b: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  static grpc::Status HangUntilLeft(grpc::ServerContext& context) {
    while (!context.IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  }

  const FilesIdentity own_ = NewFilesIdentity();
  FilesReading reading_{own_, JobId("job"), "step-00000040-gen-3"};
  std::vector<int64_t> taken_;
  std::string last_;
  absl::Status take_;
};

TEST_F(FilesReaderTest, AsksForWhatItIsToldAndGivesBlocksInTheirOrder) {
  const FilesGiver giver([](grpc::ServerContext&, const v1::ReadRequest&, Writer& writer) {
    FilesGiver::Send(writer, 4, "fo");
    FilesGiver::Send(writer, 4, "ur");
    FilesGiver::Send(writer, 6, "six");
    return grpc::Status::OK;
  });
  CheckpointHolder holder = giver.Holder("b");
  holder.ticket = MakeFilesTicket("secret", own_.digest, JobUid("uid"), 17);
  EXPECT_EQ(Read(holder, {4, 6}), absl::OkStatus());
  EXPECT_THAT(taken_, ElementsAre(4, 6));
  EXPECT_EQ(last_, "six");
  ASSERT_EQ(giver.asked().size(), 1u);
  const v1::ReadRequest asked = giver.asked().front();
  EXPECT_EQ(asked.job_id(), "job");
  EXPECT_EQ(asked.checkpoint(), "step-00000040-gen-3");
  EXPECT_EQ(asked.file(), "rank-0.bin");
  EXPECT_THAT(asked.blocks(), ElementsAre(4, 6));
  EXPECT_EQ(asked.ticket().job_uid(), "uid");
  EXPECT_EQ(asked.ticket().expires_unix_ms(), 17);
  EXPECT_EQ(asked.ticket().proof(), holder.ticket.proof);
}

TEST_F(FilesReaderTest, AGiverThatIsSilentIsLeft) {
  reading_.silence = absl::Milliseconds(100);
  const FilesGiver giver([](grpc::ServerContext& context, const v1::ReadRequest&, Writer& writer) {
    FilesGiver::Send(writer, 4, "half of it");
    return HangUntilLeft(context);
  });
  const absl::Status status = Read(giver, {4});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node b: sent nothing for 100ms"));
  EXPECT_THAT(taken_, IsEmpty());
}

TEST_F(FilesReaderTest, AGiverThatIsTooSlowIsLeft) {
  reading_.silence = absl::Milliseconds(50);
  reading_.least_bytes_per_second = int64_t{1} << 40;  // no giver sends so much
  const FilesGiver giver([](grpc::ServerContext& context, const v1::ReadRequest&, Writer& writer) {
    while (!context.IsCancelled()) FilesGiver::Send(writer, 4, "x");
    return grpc::Status::OK;
  });
  const absl::Status status = Read(giver, {4});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node b: sends less than 1073741824 KiB a second"));
  EXPECT_THAT(taken_, IsEmpty());
}

TEST_F(FilesReaderTest, WhatWasNotAskedForIsNotTaken) {
  const std::string whole(static_cast<size_t>(kCheckpointBlockBytes), 'x');
  ExpectLie([](Writer& writer) { FilesGiver::Send(writer, 5, "five"); }, "sends block 5 instead of 4");
  EXPECT_THAT(taken_, IsEmpty());
  ExpectLie([](Writer& writer) { FilesGiver::Send(writer, 4, ""); }, "without bytes");
  EXPECT_THAT(taken_, IsEmpty());
  ExpectLie([](Writer& writer) { FilesGiver::Send(writer, 4, "four"); }, "sends 1 blocks of 2");
  EXPECT_THAT(taken_, ElementsAre(4));
  ExpectLie(
      [](Writer& writer) {
        for (const int block : {4, 6, 4}) FilesGiver::Send(writer, block, "x");
      },
      "more than the blocks");
  EXPECT_THAT(taken_, ElementsAre(4, 6));
  ExpectLie(
      [&](Writer& writer) {
        FilesGiver::Send(writer, 4, "x");
        FilesGiver::SendBlock(writer, 0, whole);
      },
      "sends block 0");
  ExpectLie(
      [&](Writer& writer) {
        FilesGiver::Send(writer, 4, "x");
        for (int part = 0; part < 32; ++part) FilesGiver::Send(writer, 4, whole.substr(0, 128 << 10));
      },
      "sends more of block 4");
  EXPECT_THAT(taken_, IsEmpty());
  ExpectLie(
      [&](Writer& writer) {
        for (int part = 0; part < 33; ++part) FilesGiver::Send(writer, 4, whole.substr(0, 128 << 10));
      },
      "sends block 4 instead of 6");
  EXPECT_THAT(taken_, ElementsAre(4));
}

TEST_F(FilesReaderTest, WhoTakesMayRefuse) {
  const FilesGiver giver([](grpc::ServerContext& context, const v1::ReadRequest&, Writer& writer) {
    FilesGiver::Send(writer, 4, "wrong bytes");
    FilesGiver::Send(writer, 6, "of which no more is read");
    return HangUntilLeft(context);
  });
  take_ = absl::DataLossError("block 4 has another digest");
  EXPECT_EQ(Read(giver, {4, 6}), take_);
  EXPECT_THAT(taken_, ElementsAre(4));
}

TEST_F(FilesReaderTest, AnotherCertificateIsNotBelieved) {
  const FilesGiver giver([](grpc::ServerContext&, const v1::ReadRequest&, Writer&) { return grpc::Status::OK; });
  CheckpointHolder holder = giver.Holder("b");
  holder.certificate = own_.digest;
  const absl::Status status = Read(holder, {4});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node b: who answers there shows another certificate"));
  EXPECT_THAT(giver.asked(), IsEmpty());
}

TEST_F(FilesReaderTest, AGiverThatIsGoneIsNamed) {
  FilesGiver giver([](grpc::ServerContext&, const v1::ReadRequest&, Writer&) { return grpc::Status::OK; });
  giver.Stop();
  const absl::Status status = Read(giver, {4});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("node b: does not answer: "));
}

TEST_F(FilesReaderTest, AGiverThatGoesKeepsWhatCame) {
  FilesGiver giver([](grpc::ServerContext& context, const v1::ReadRequest&, Writer& writer) {
    FilesGiver::Send(writer, 4, "four");
    FilesGiver::Send(writer, 6, "s");
    return HangUntilLeft(context);
  });
  const absl::Status status = ReadBlocks(giver.Holder("b"), reading_, "rank-0.bin", {4, 6}, [&](int64_t block, std::string_view) {
    taken_.push_back(block);
    giver.Stop();
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(taken_, ElementsAre(4));
}

TEST_F(FilesReaderTest, WhatTheGiverSaysIsToldApart) {
  for (const auto code : {grpc::StatusCode::NOT_FOUND, grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::PERMISSION_DENIED,
                          grpc::StatusCode::OUT_OF_RANGE, grpc::StatusCode::DATA_LOSS}) {
    const FilesGiver giver(
        [code](grpc::ServerContext&, const v1::ReadRequest&, Writer&) { return grpc::Status(code, "its\nwords"); });
    const absl::Status status = Read(giver, {4});
    EXPECT_EQ(status.code(), static_cast<absl::StatusCode>(code));
    EXPECT_EQ(std::string(status.message()), "node b: its\\nwords");
  }
  const FilesGiver giver([](grpc::ServerContext&, const v1::ReadRequest&, Writer&) {
    return grpc::Status(grpc::StatusCode::CANCELLED, "as if somebody here had stopped it");
  });
  EXPECT_TRUE(absl::IsUnavailable(Read(giver, {4})));
}

TEST_F(FilesReaderTest, IsStoppedBetweenPartsAndInASilence) {
  reading_.silence = absl::Hours(1);
  const FilesGiver giver([](grpc::ServerContext& context, const v1::ReadRequest&, Writer& writer) {
    FilesGiver::Send(writer, 4, "four");
    FilesGiver::Send(writer, 6, "six");
    return HangUntilLeft(context);
  });
  reading_.stopped = [&] { return !taken_.empty(); };
  EXPECT_TRUE(absl::IsCancelled(Read(giver, {4, 6})));
  EXPECT_THAT(taken_, ElementsAre(4));
  const FilesGiver silent([](grpc::ServerContext& context, const v1::ReadRequest&, Writer&) { return HangUntilLeft(context); });
  int looked = 0;
  reading_.stopped = [&] { return ++looked > 5; };
  taken_.clear();
  EXPECT_TRUE(absl::IsCancelled(Read(silent, {4, 6})));
  EXPECT_THAT(taken_, IsEmpty());
}

}  // namespace
}  // namespace motley::worker
