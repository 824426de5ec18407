#include "tests/worker/engine/nccl/fake_cliques.h"

#include <cstring>

#include "tests/worker/engine/nccl/half_sums.h"

namespace motley::engine {
namespace {

size_t BytesOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return 8;
    case ncclFloat32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclUint8:
      return 1;
  }
  return 0;
}

const char* NameOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return "float64";
    case ncclFloat32:
      return "float32";
    case ncclFloat16:
      return "float16";
    case ncclBfloat16:
      return "bfloat16";
    case ncclUint8:
      return "uint8";
  }
  return "unknown";
}

template <typename T, typename Add>
void AddAll(std::vector<char>& sum, const void* more, size_t count, Add add) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, sum.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&b, static_cast<const char*>(more) + i * sizeof(T), sizeof(T));
    a = add(a, b);
    std::memcpy(sum.data() + i * sizeof(T), &a, sizeof(T));
  }
}

void AddTo(std::vector<char>& sum, const void* more, size_t count, ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return AddAll<double>(sum, more, count, [](double a, double b) { return a + b; });
    case ncclFloat32:
      return AddAll<float>(sum, more, count, [](float a, float b) { return a + b; });
    case ncclFloat16:
      return AddAll<uint16_t>(sum, more, count,
                              [](uint16_t a, uint16_t b) { return Float16Of(FloatOfFloat16(a) + FloatOfFloat16(b)); });
    case ncclBfloat16:
      return AddAll<uint16_t>(sum, more, count,
                              [](uint16_t a, uint16_t b) { return BFloat16Of(FloatOfBFloat16(a) + FloatOfBFloat16(b)); });
    case ncclUint8:
      return AddAll<uint8_t>(sum, more, count, [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a + b); });
  }
}

std::vector<char> CopyOf(const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  return std::vector<char>(begin, begin + bytes);
}

std::vector<char> SumOf(const std::vector<FakeCallPtr>& calls, size_t count, ncclDataType_t type) {
  std::vector<char> sum = CopyOf(calls[0]->from, count * BytesOf(type));
  for (size_t i = 1; i < calls.size(); ++i) AddTo(sum, calls[i]->from, count, type);
  return sum;
}

// All are here. Buffers may overlap (calls in place), so everything is read before anything is written.
void MoveData(const std::vector<FakeCallPtr>& calls) {
  const FakeCall& first = *calls[0];
  const size_t bytes = first.count * BytesOf(first.type);
  switch (first.kind) {
    case FakeKind::kBroadcast: {
      const std::vector<char> data = CopyOf(calls[first.root]->from, bytes);
      for (const FakeCallPtr& call : calls) std::memcpy(call->to, data.data(), bytes);
      return;
    }
    case FakeKind::kReduce: {
      const std::vector<char> sum = SumOf(calls, first.count, first.type);
      std::memcpy(calls[first.root]->to, sum.data(), bytes);
      return;
    }
    case FakeKind::kAllGather: {
      std::vector<char> whole;
      for (const FakeCallPtr& call : calls) {
        const std::vector<char> part = CopyOf(call->from, bytes);
        whole.insert(whole.end(), part.begin(), part.end());
      }
      for (const FakeCallPtr& call : calls) std::memcpy(call->to, whole.data(), whole.size());
      return;
    }
    case FakeKind::kReduceScatter: {
      const std::vector<char> sum = SumOf(calls, first.count * calls.size(), first.type);
      for (size_t i = 0; i < calls.size(); ++i) std::memcpy(calls[i]->to, sum.data() + i * bytes, bytes);
      return;
    }
    case FakeKind::kAllReduce: {
      const std::vector<char> sum = SumOf(calls, first.count, first.type);
      for (const FakeCallPtr& call : calls) std::memcpy(call->to, sum.data(), bytes);
      return;
    }
    case FakeKind::kSend:
    case FakeKind::kReceive:
      std::memcpy(calls[1]->to, calls[0]->from, bytes);
      return;
  }
}

void Break(FakeClique& clique, ncclResult_t error, const std::string& failure) {
  clique.broken = true;
  clique.error = error;
  clique.failure = failure;
}

void Place(FakeClique& clique, FakeOperation& operation, size_t member, const FakeCallPtr& call) {
  operation.by_member[member] = call;
  if (static_cast<size_t>(++operation.here) < operation.by_member.size()) return;
  MoveData(operation.by_member);
  operation.done = true;
}

FakeOperationPtr NewOperation(size_t members) {
  auto operation = std::make_shared<FakeOperation>();
  operation->by_member.resize(members);
  return operation;
}

FakeOperationPtr ComeToHandOver(const FakeCallPtr& mine_call) {
  const FakeCall& call = *mine_call;
  FakeClique& clique = *call.comm->clique;
  const bool sends = call.kind == FakeKind::kSend;
  const int me = call.comm->rank;
  auto& waiting = clique.hand_overs[sends ? std::pair(me, call.root) : std::pair(call.root, me)];
  const size_t mine = sends ? 0 : 1;
  // In the queue are those of one end alone: whoever finds one of the other's meets it.
  if (waiting.empty() || waiting.front()->by_member[mine] != nullptr) {
    waiting.push_back(NewOperation(2));
    waiting.back()->by_member[mine] = mine_call;
    waiting.back()->here = 1;
    return waiting.back();
  }
  const FakeOperationPtr operation = waiting.front();
  waiting.pop_front();
  const FakeCall& other = *operation->by_member[1 - mine];
  if (other.count != call.count || other.type != call.type) {
    Break(clique, ncclInvalidUsage,
          "rank " + std::to_string(me) + " called " + TextOf(call) + " where rank " + std::to_string(call.root) + " called " +
              TextOf(other));
    return operation;
  }
  Place(clique, *operation, mine, mine_call);
  return operation;
}

FakeOperationPtr ComeToCollective(const FakeCallPtr& mine) {
  const FakeCall& call = *mine;
  FakeClique& clique = *call.comm->clique;
  const uint64_t number = call.comm->next_collective++;
  while (clique.first_collective + clique.collectives.size() <= number) clique.collectives.push_back(NewOperation(clique.ranks));
  const FakeOperationPtr operation = clique.collectives[number - clique.first_collective];
  for (size_t i = 0; i < operation->by_member.size(); ++i) {
    const FakeCallPtr& other = operation->by_member[i];
    if (other == nullptr ||
        (other->kind == call.kind && other->count == call.count && other->type == call.type && other->root == call.root)) {
      continue;
    }
    Break(clique, ncclInvalidUsage,
          "rank " + std::to_string(call.comm->rank) + " called " + TextOf(call) + " where rank " + std::to_string(i) +
              " called " + TextOf(*other));
    return operation;
  }
  Place(clique, *operation, call.comm->rank, mine);
  while (!clique.collectives.empty() && clique.collectives.front()->done) {
    clique.collectives.pop_front();
    ++clique.first_collective;
  }
  return operation;
}

}  // namespace

std::string TextOf(const FakeCall& call) {
  const std::string what = std::to_string(call.count) + " " + NameOf(call.type), root = std::to_string(call.root);
  switch (call.kind) {
    case FakeKind::kBroadcast:
      return "broadcast of " + what + " from " + root;
    case FakeKind::kReduce:
      return "reduce of " + what + " to " + root;
    case FakeKind::kAllGather:
      return "all-gather of " + what;
    case FakeKind::kReduceScatter:
      return "reduce-scatter of " + what;
    case FakeKind::kAllReduce:
      return "all-reduce of " + what;
    case FakeKind::kSend:
      return "send of " + what + " to " + root;
    case FakeKind::kReceive:
      return "receive of " + what + " from " + root;
  }
  return what;
}

FakeOperationPtr ComeTo(const FakeCallPtr& call) {
  if (call->comm->clique->broken) return NewOperation(1);
  return call->kind == FakeKind::kSend || call->kind == FakeKind::kReceive ? ComeToHandOver(call) : ComeToCollective(call);
}

}  // namespace motley::engine
