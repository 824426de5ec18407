#include "common/base/altered_way.h"

#include "absl/strings/str_cat.h"

namespace motley {
namespace {

constexpr std::string_view kWhat = "what ", kSentTo = " sent to ", kAltered = " was altered on the way";

}  // namespace

std::string AlteredOnTheWay(const AlteredWay& way) {
  return absl::StrCat(std::string(kWhat), way.sender, std::string(kSentTo), way.receiver, std::string(kAltered));
}

std::optional<AlteredWay> SaysAltered(std::string_view message) {
  const size_t end = message.find(kAltered);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view before = message.substr(0, end);
  const size_t to = before.rfind(kSentTo);
  if (to == std::string_view::npos) return std::nullopt;
  const size_t from = before.substr(0, to).rfind(kWhat);
  if (from == std::string_view::npos) return std::nullopt;
  const size_t sender = from + kWhat.size(), receiver = to + kSentTo.size();
  return AlteredWay{std::string(before.substr(sender, to - sender)), std::string(before.substr(receiver))};
}

}  // namespace motley
