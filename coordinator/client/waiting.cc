#include "coordinator/client/waiting.h"

#include "absl/time/clock.h"
#include "common/base/clean_text.h"

namespace motley::client {
namespace {

constexpr absl::Duration kQuiet = absl::Seconds(2);  // before it is said what takes so long

}  // namespace

Waiting::Waiting(Context& context) : context_(context), begun_(absl::Now()) {}

void Waiting::Show(const std::string& doing) {
  if (absl::Now() - begun_ < kQuiet) return;
  const std::string text = CleanLine(doing);
  if (context_.screen.live && !context_.json) {
    Clear();
    context_.out << Cut(text, context_.screen.width > 1 ? context_.screen.width - 1 : text.size()) << std::flush;
    live_ = true;
  } else if (const std::string stage = text.substr(0, text.find(',')); stage != said_) {
    said_ = stage;
    context_.Say(text);
  }
}

void Waiting::Clear() {
  if (live_) context_.out << "\r\x1b[K" << std::flush;
  live_ = false;
}

}  // namespace motley::client
