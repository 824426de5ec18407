#include "tests/worker/engine/kernels/emulated_card.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace motley::kernels::emulated {
namespace {

constexpr size_t kStackBytes = 64 << 10, kMostSharedBytes = 48 << 10;
constexpr unsigned kMostThreads = 1024, kWarp = 32;

enum class At { kRuns, kBarrier, kShuffle, kEnded };

struct Thread {
  ucontext_t context;
  dim3 index;
  unsigned number = 0;
  At at = At::kRuns;
  // By turns: a lane may be at its next shuffle while another one has yet to read what it gave to this.
  float given[2] = {0, 0};
  unsigned shuffles = 0;
};

// A block as it runs, of the calling thread.
struct Block {
  const Launch& launch;
  dim3 index;
  std::vector<Thread> threads;
  std::vector<std::byte> shared;
  Thread* now = nullptr;
  ucontext_t scheduler;
  std::string failure;
};
thread_local Block* block = nullptr;
thread_local std::vector<std::unique_ptr<char[]>> stacks;

void GiveUp(At at) {
  Thread& me = *block->now;
  me.at = at;
  swapcontext(&me.context, &block->scheduler);
}

void Enter(unsigned high, unsigned low) {
  (*reinterpret_cast<const std::function<void()>*>(uint64_t{high} << 32 | low))();
  block->now->at = At::kEnded;
}

void MakeThreads(Block& b, const std::function<void()>& kernel) {
  const dim3& size = b.launch.block;
  while (stacks.size() < b.threads.size()) stacks.push_back(std::make_unique<char[]>(kStackBytes));
  const auto at = reinterpret_cast<uint64_t>(&kernel);
  for (unsigned number = 0; number < b.threads.size(); ++number) {
    Thread& thread = b.threads[number];
    thread.number = number;
    thread.index = {number % size.x, number / size.x % size.y, number / size.x / size.y};
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stacks[number].get(), kStackBytes);  // of a fiber that did not end
#endif
    getcontext(&thread.context);
    thread.context.uc_stack = {stacks[number].get(), 0, kStackBytes};
    thread.context.uc_link = &b.scheduler;
    makecontext(&thread.context, reinterpret_cast<void (*)()>(Enter), 2, static_cast<unsigned>(at >> 32),
                static_cast<unsigned>(at));
  }
}

size_t CountAt(const Block& b, size_t begin, size_t end, At at) {
  return static_cast<size_t>(std::count_if(b.threads.begin() + static_cast<std::ptrdiff_t>(begin),
                                           b.threads.begin() + static_cast<std::ptrdiff_t>(end),
                                           [at](const Thread& thread) { return thread.at == at; }));
}

// Lets those go on that all who must have reached. Whether the block goes on.
bool Release(Block& b) {
  const size_t all = b.threads.size();
  if (CountAt(b, 0, all, At::kEnded) == all) return false;
  bool released = false;
  for (size_t begin = 0; begin < all; begin += kWarp) {
    const size_t end = std::min(all, begin + kWarp);
    if (CountAt(b, begin, end, At::kShuffle) != end - begin) continue;
    for (size_t i = begin; i < end; ++i) b.threads[i].at = At::kRuns;
    released = true;
  }
  if (released) return true;
  const size_t waiting = CountAt(b, 0, all, At::kBarrier);
  if (waiting == all) {
    for (Thread& thread : b.threads) thread.at = At::kRuns;
    return true;
  }
  if (CountAt(b, 0, all, At::kShuffle) > 0) {
    b.failure = "a shuffle that not all lanes of its warp reach";
  } else {
    b.failure = "a barrier that " + std::to_string(waiting) + " of " + std::to_string(all) + " threads reach";
  }
  return false;
}

void RunBlock(Block& b, const std::function<void()>& kernel, std::mt19937_64& draw) {
  MakeThreads(b, kernel);
  std::vector<unsigned> order(b.threads.size());
  std::iota(order.begin(), order.end(), 0u);
  do {
    std::shuffle(order.begin(), order.end(), draw);
    for (const unsigned number : order) {
      Thread& thread = b.threads[number];
      if (thread.at != At::kRuns) continue;
      b.now = &thread;
      swapcontext(&b.scheduler, &thread.context);
      if (!b.failure.empty()) return;
    }
  } while (Release(b));
}

}  // namespace

std::string RunGrid(const Launch& launch, const std::function<void()>& kernel) {
  const size_t threads = size_t{launch.block.x} * launch.block.y * launch.block.z;
  if (threads == 0 || threads > kMostThreads) return "a block of " + std::to_string(threads) + " threads";
  if (launch.shared_bytes > kMostSharedBytes) return std::to_string(launch.shared_bytes) + " bytes of shared memory";
  std::mt19937_64 draw(launch.seed);
  std::vector<dim3> order;
  for (unsigned z = 0; z < launch.grid.z; ++z) {
    for (unsigned y = 0; y < launch.grid.y; ++y) {
      for (unsigned x = launch.first_block; x < launch.grid.x && x <= launch.last_block; ++x) order.push_back({x, y, z});
    }
  }
  std::shuffle(order.begin(), order.end(), draw);
  std::string failure;
  for (const dim3& index : order) {
    Block running = {.launch = launch,
                     .index = index,
                     .threads = std::vector<Thread>(threads),
                     .shared = std::vector<std::byte>(launch.shared_bytes, std::byte{0xff})};
    block = &running;
    RunBlock(running, kernel, draw);
    block = nullptr;
    if (!running.failure.empty()) return running.failure;
  }
  return "";
}

const dim3& ThreadIndex() { return block->now->index; }
const dim3& BlockIndex() { return block->index; }
const dim3& BlockSize() { return block->launch.block; }
const dim3& GridSize() { return block->launch.grid; }
std::byte* SharedBytes() { return block->shared.data(); }

void Barrier() { GiveUp(At::kBarrier); }

float ShuffleXor(uint32_t mask, float value, int apart) {
  if (mask != ~0u) Fail("a shuffle of some lanes");
  Thread& me = *block->now;
  const unsigned turn = me.shuffles++ % 2;
  me.given[turn] = value;
  GiveUp(At::kShuffle);
  return block->threads[me.number ^ static_cast<unsigned>(apart)].given[turn];
}

void Fail(const std::string& why) {
  block->failure = why;
  GiveUp(At::kEnded);  // for ever
}

float WideHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

uint16_t NarrowHalf(float value) {
  if (std::isnan(value)) return 0x7fff;  // as the instruction says it
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const float size = std::fabs(value);
  if (size >= 65520.0f) return sign | 0x7c00;  // nearer to 65536 than to the largest one, or the tie
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int step = std::max(exponent, -13) - 11;                                        // 2^step between neighbours
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, -step)));         // ties to even
  return static_cast<uint16_t>(sign | (steps + (step > -24 ? (step + 24) << 10 : 0)));  // a carry is the next exponent
}

}  // namespace motley::kernels::emulated
