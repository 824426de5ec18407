// A request to the port of the page and of metrics.
#include <string>

#include "common/metrics/text_server.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace motley;
  const std::string request(fuzz::Text(data, size));
  const auto lies_within = [&request](absl::string_view part) {
    return part.empty() || (part.data() >= request.data() && part.data() + part.size() <= request.data() + request.size());
  };
  const auto route = [&](const TextRequest& parsed) {
    for (const absl::string_view part :
         {parsed.path, parsed.query, parsed.headers, parsed.Header("Motley-Key"), parsed.Header("")})
      fuzz::Require(lies_within(part), "a part of the request is not of it");
    fuzz::Require(parsed.Header("motley-key") == parsed.Header("MOTLEY-KEY"), "a header is known in one case alone");
    fuzz::Require(parsed.path.find('?') == absl::string_view::npos, "a path has its query");
    return TextAnswerOf(std::string(parsed.path));
  };
  if (const auto answer = AnswerTo(request, route)) fuzz::Require(!HeadOf(*answer).empty(), "an answer has no head");
  return 0;
}
