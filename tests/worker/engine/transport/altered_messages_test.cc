// What ranks send each other, altered on the way: found before anybody uses it, and said of whom it came to whom.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <random>

#include "common/base/altered_way.h"
#include "common/base/fault.h"
#include "tests/common/base/patience.h"
#include "tests/worker/engine/transport/altering_relay.h"
#include "tests/worker/engine/transport/ranks.h"
#include "worker/engine/transport/segment_message.h"

namespace motley::engine {
namespace {

constexpr int64_t kArrayElements = 20'000, kOwnedByFirst = 17'000;  // float32: two segments and one
constexpr int64_t kGivenBytes = 70'000;                             // bytes: two segments
constexpr int kCallRounds = 2;
constexpr size_t kCode = Gmac::kCodeBytes, kHeader = sizeof(SegmentHeader);
constexpr size_t kCredit = 16, kTerms = 24, kAcknowledgement = 16, kSegment = 64 * 1024;

struct CallsOfOne {
  absl::Status status;
  bool took_what_was_altered = false;
};

// Each call's result is right, or it fails and what it has summed is right all the same.
class CheckedCalls {
 public:
  explicit CheckedCalls(Communicator& communicator) : communicator_(communicator) {}

  CallsOfOne Call() {
    for (int round = 0; round < kCallRounds; ++round) {
      if (!(Scalars(round) && Gather(round) && Sum(round) && HandOver(round))) break;
    }
    return ended_;
  }

 private:
  bool Goes(absl::Status status) {
    ended_.status = std::move(status);
    return ended_.status.ok();
  }
  // Of a call that went well.
  bool Right(bool right) {
    ended_.took_what_was_altered = ended_.took_what_was_altered || !right;
    return true;
  }
  int rank() const { return communicator_.rank(); }

  bool Scalars(int round) {
    const auto all = communicator_.GatherScalars({rank() + 10.0 * round});
    return Goes(all.status()) && Right((*all)[0][0] == 10.0 * round && (*all)[1][0] == 1 + 10.0 * round);
  }
  bool Gather(int round) {
    const std::vector<float> whole = Contribution<float>(0, kArrayElements, round);
    std::vector<float> array(kArrayElements, -1);
    const Owners owners = OwnersOf({0, kOwnedByFirst, kArrayElements});
    const ElementRange mine = owners[rank()][0];
    std::copy(whole.begin() + mine.begin, whole.begin() + mine.end, array.begin() + mine.begin);
    return Goes(communicator_.AllGather(0, array.data(), DType::kFloat32, owners)) && Right(array == whole);
  }
  bool Sum(int round) {
    const std::vector<float> own = Contribution<float>(rank(), kArrayElements, round),
                             others = Contribution<float>(1 - rank(), kArrayElements, round);
    std::vector<float> array = own;
    const Owners owners = OwnersOf({0, kOwnedByFirst, kArrayElements});
    const bool goes = Goes(communicator_.ReduceScatter(0, array.data(), DType::kFloat32, owners));
    const ElementRange mine = owners[rank()][0];
    for (int64_t e = 0; e < kArrayElements; ++e) {
      const bool is_sum = array[e] == own[e] + others[e], summed = goes && e >= mine.begin && e < mine.end;
      Right(is_sum || (!summed && array[e] == own[e]));
    }
    return goes;
  }
  bool HandOver(int round) {
    for (const int from : {0, 1}) {
      const std::string sent(kGivenBytes, static_cast<char>('a' + from + 2 * round));
      std::string data(kGivenBytes, ' ');
      const bool goes = Goes(rank() == from ? communicator_.Send(1 - from, sent.data(), kGivenBytes)
                                            : communicator_.Receive(from, data.data(), kGivenBytes));
      if (!goes) return false;
      if (rank() != from) Right(data == sent);
    }
    return true;
  }

  Communicator& communicator_;
  CallsOfOne ended_;
};

// The rank that calls meets the other one in the relay.
class RelayedHost : public FakeHost {
 public:
  RelayedHost(FakeKv& kv, AlteringRelay& relay, bool calls) : FakeHost(kv), relay_(relay), calls_(calls) {}
  absl::StatusOr<std::string> KvGet(const std::string& key, absl::Duration timeout) override {
    absl::StatusOr<std::string> value = FakeHost::KvGet(key, timeout);
    if (calls_ && value.ok() && key == "peer/1") return relay_.InFrontOf(*value);
    return value;
  }

 private:
  AlteringRelay& relay_;
  const bool calls_;
};

struct CallsOfBoth {
  std::array<CallsOfOne, 2> ranks;
  std::map<StreamId, std::string> sent;
};

CallsOfBoth CallThrough(std::optional<Alteration> alteration, DataAuthentication authentication = DataAuthentication::kAlways) {
  AlteringRelay relay(std::move(alteration));
  FakeKv kv;
  CallsOfBoth outcome;
  OnRanks(2, [&](int rank) {
    RelayedHost host(kv, relay, rank == 0);
    const auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0")};
    options.data_addresses = {"127.0.0.1", "127.0.0.1"};
    options.groups = {EveryRank(2)};
    options.authentication = authentication;
    options.deadline = Patience(absl::Minutes(1));
    EverybodyHandsOver(options);
    const auto communicator = ConnectCommunicator(options, host, **links);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    outcome.ranks[rank] = CheckedCalls(**communicator).Call();
  });
  relay.Stop();
  outcome.sent = relay.sent();
  return outcome;
}

// What is sent in each stream: the bytes of its messages, without their codes.
std::map<StreamId, std::vector<size_t>> MessagesOfStreams() {
  const auto segments = [](std::vector<size_t>& to, size_t bytes) {
    for (; bytes > 0; bytes -= std::min(bytes, kSegment)) to.insert(to.end(), {kHeader, std::min(bytes, kSegment)});
  };
  const size_t first = kOwnedByFirst * sizeof(float), second = (kArrayElements - kOwnedByFirst) * sizeof(float);
  std::map<StreamId, std::vector<size_t>> streams;
  for (int round = 0; round < kCallRounds; ++round) {
    for (const bool callers : {true, false}) {
      std::vector<size_t>& scalars = streams[{kHostExchangeChannel, callers}];
      scalars.insert(scalars.end(), {kCredit, kHeader, sizeof(double)});
      std::vector<size_t>& group = streams[{GroupChannel(0), callers}];
      group.push_back(kCredit);
      segments(group, callers ? first : second);  // its own
      group.push_back(kCredit);
      segments(group, callers ? second : first);  // the sums of which are the other's
      std::vector<size_t>& gives = streams[{HandOverChannel(callers ? 0 : 1, callers ? 1 : 0), callers}];
      gives.push_back(kTerms);
      segments(gives, kGivenBytes);
      std::vector<size_t>& takes = streams[{HandOverChannel(callers ? 1 : 0, callers ? 0 : 1), callers}];
      takes.insert(takes.end(), {kTerms, kAcknowledgement});
    }
  }
  return streams;
}

// Draws who alters what, and how.
class Draw {
 public:
  Draw(uint32_t seed, std::map<StreamId, std::string> of_another_meeting)
      : random_(seed), before_(std::move(of_another_meeting)) {
    for (const auto& [stream, messages] : messages_) streams_.push_back(stream);
  }

  Alteration Next(int kind, std::string* what) {
    for (;;) {
      const StreamId stream = streams_[Below(streams_.size())];
      const std::vector<size_t>& messages = messages_.at(stream);
      const size_t i = kind == kSentBack ? 0 : Below(messages.size());
      const size_t begin = std::accumulate(messages.begin(), messages.begin() + i, i * kCode), end = begin + messages[i] + kCode;
      const size_t next = i + 1 < messages.size() ? messages[i + 1] + kCode : 0;
      const bool ends_call = next == 0 || messages[i + 1] == kCredit || messages[i + 1] == kTerms;
      Alteration alteration{.stream = stream, .begin = begin, .end = end};
      // Where too little follows a message that is left out, its receiver waits for the rest, as in a network that loses packets.
      if (kind == kLeftOut && (next < end - begin || ends_call)) continue;
      if (kind == kDoubled && next == 0) continue;                 // nobody reads on
      if (kind == kExchanged && messages[i] != kHeader) continue;  // the next is sent with it
      if (kind == kExchanged) alteration.end += next;
      alteration.change = Change(kind, stream, begin, messages[i]);
      alteration.cut = kind == kCut;
      alteration.sent_back = kind == kSentBack;
      *what = absl::StrCat("kind ", kind, ", message ", i, " of ", messages[i], " bytes, channel ", stream.channel,
                           stream.callers ? " to the callee" : " to the caller");
      return alteration;
    }
  }

  enum Kind { kByte, kByteOfCode, kLeftOut, kDoubled, kExchanged, kCut, kSentBack, kOfAnotherMeeting, kKinds };

 private:
  size_t Below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  std::function<std::string(const std::string&)> Change(int kind, const StreamId& stream, size_t begin, size_t bytes) {
    const size_t at = kind == kByteOfCode ? bytes + Below(kCode) : Below(bytes);
    const char mask = static_cast<char>(1 << Below(8));
    switch (kind) {
      case kByte:
      case kByteOfCode:
        return [=](std::string message) { return message[at] ^= mask, message; };
      case kLeftOut:
        return [](const std::string&) { return std::string(); };
      case kDoubled:
        return [](const std::string& message) { return message + message; };
      case kExchanged:
        return [=](const std::string& both) { return both.substr(bytes + kCode) + both.substr(0, bytes + kCode); };
      case kCut:
        return [=](const std::string& message) { return message.substr(0, at); };
      case kOfAnotherMeeting:
        return [=, other = before_.at(stream).substr(begin, bytes + kCode)](const std::string&) { return other; };
      default:
        return nullptr;
    }
  }

  std::mt19937 random_;
  const std::map<StreamId, std::string> before_;
  const std::map<StreamId, std::vector<size_t>> messages_ = MessagesOfStreams();
  std::vector<StreamId> streams_;
};

TEST(AlteredMessages, WhatNobodyAltersIsTaken) {
  const CallsOfBoth outcome = CallThrough(std::nullopt);
  for (const CallsOfOne& rank : outcome.ranks) {
    EXPECT_EQ(rank.status, absl::OkStatus());
    EXPECT_FALSE(rank.took_what_was_altered);
  }
  for (const auto& [stream, messages] : MessagesOfStreams()) {
    // A rank that leaves says a byte more in the host exchange, which nobody reads.
    const size_t farewell = stream.channel == kHostExchangeChannel ? 1 : 0;
    EXPECT_EQ(outcome.sent.at(stream).size(),
              std::accumulate(messages.begin(), messages.end(), messages.size() * kCode) + farewell)
        << "channel " << stream.channel << " " << stream.callers;
  }
}

TEST(AlteredMessages, EachIsFoundBeforeItIsUsed) {
  Draw draw(7, CallThrough(std::nullopt).sent);
  for (int i = 0; i < 1000; ++i) {
    // Single bytes are most of it: header, numbers, payload, code.
    const int kind = i % 2 == 0 ? Draw::kByte : i / 2 % Draw::kKinds;
    std::string what;
    const Alteration alteration = draw.Next(kind, &what);
    SCOPED_TRACE(what);
    const CallsOfBoth outcome = CallThrough(alteration);
    bool ended = false;
    for (const CallsOfOne& rank : outcome.ranks) {
      ASSERT_FALSE(rank.took_what_was_altered);
      ASSERT_TRUE(rank.status.ok() || FaultOf(rank.status) == Fault::kPeer) << rank.status;
      ended = ended || !rank.status.ok();
    }
    ASSERT_TRUE(ended);
    if (kind == Draw::kCut) continue;  // the connection ended, and says so
    const bool sent_by_caller = alteration.stream.callers != (kind == Draw::kSentBack);
    const AlteredWay way = sent_by_caller ? AlteredWay{"a/gpu0", "b/gpu0"} : AlteredWay{"b/gpu0", "a/gpu0"};
    const absl::Status& finders = outcome.ranks[sent_by_caller ? 1 : 0].status;
    ASSERT_EQ(SaysAltered(std::string(finders.message())), way) << finders;
  }
}

// Else the test would prove nothing.
TEST(AlteredMessages, WithoutCodesTheyAreTaken) {
  Alteration alteration{.stream = {HandOverChannel(0, 1), true}, .begin = kTerms + kHeader};
  alteration.end = alteration.begin + 8;
  alteration.change = [](const std::string&) { return std::string("otherwise").substr(0, 8); };
  const CallsOfBoth outcome = CallThrough(alteration, DataAuthentication::kNever);
  EXPECT_EQ(outcome.ranks[1].status, absl::OkStatus());
  EXPECT_TRUE(outcome.ranks[1].took_what_was_altered);
}

// Of three ranks: the next one in the ring is sent nothing of it.
TEST(AlteredMessages, AreNotPassedOn) {
  AlteringRelay relay(Alteration{
      .stream = {GroupChannel(0), true}, .begin = kHeader + kCode, .end = kHeader + kCode + 1, .change = [](std::string byte) {
        return byte[0] ^= 1, byte;
      }});
  FakeKv kv;
  OnRanks(3, [&](int rank) {
    RelayedHost host(kv, relay, rank == 0);
    const auto links = LinkClock::Map(-1);
    CommunicatorOptions options;
    options.rank = rank;
    options.devices = {DeviceId("a/gpu0"), DeviceId("b/gpu0"), DeviceId("c/gpu0")};
    options.data_addresses.assign(3, "127.0.0.1");
    options.groups = {EveryRank(3)};
    options.authentication = DataAuthentication::kAlways;
    const auto communicator = ConnectCommunicator(options, host, **links);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    const std::vector<float> whole = Contribution<float>(0, kArrayElements, 0);
    std::vector<float> array = rank == 0 ? whole : std::vector<float>(kArrayElements, -1);
    const absl::Status status =
        (*communicator)
            ->AllGather(0, array.data(), DType::kFloat32, OwnersOf({0, kArrayElements, kArrayElements, kArrayElements}));
    if (rank == 1) {
      EXPECT_EQ(SaysAltered(std::string(status.message())), (AlteredWay{"a/gpu0", "b/gpu0"})) << status;
    }
    if (rank == 2) {
      EXPECT_FALSE(status.ok());
      EXPECT_EQ(array, std::vector<float>(kArrayElements, -1));
    }
  });
}

}  // namespace
}  // namespace motley::engine
