#include "coordinator/page/page_routes.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/hmac.h"
#include "common/base/job_id.h"
#include "coordinator/page/web/page_text.h"

namespace motley::coordinator {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8", kJson[] = "application/json";
constexpr char kKeyHeader[] = "Motley-Key";

TextAnswer PageAnswer(std::shared_ptr<const std::string> body, absl::string_view type, absl::string_view status = "200 OK") {
  TextAnswer answer;
  answer.status = status;
  answer.type = type;
  answer.body = std::move(body);
  answer.of_page = true;
  answer.headers = absl::StrCat("Content-Security-Policy: ", type == kHtml ? PagePolicy() : "default-src 'none'",
                                "; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
                                "X-Frame-Options: DENY\r\nCross-Origin-Opener-Policy: same-origin\r\n"
                                "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n");
  return answer;
}

TextAnswer Refusal(absl::string_view status, absl::string_view why) {
  return PageAnswer(std::make_shared<const std::string>(absl::StrCat("{\"error\":\"", why, "\"}")), kJson, status);
}

// "cluster", or one of the others with a job's id.
bool IsTopic(absl::string_view topic) {
  if (topic == "cluster") return true;
  for (const absl::string_view kind : {"job/", "simulated/", "measured/"}) {
    if (absl::ConsumePrefix(&topic, kind)) return IsJobId(std::string(topic));
  }
  return false;
}

// "after=12&life=abc"
void ParseQuery(absl::string_view query, int64_t* after, std::string* life) {
  for (const absl::string_view part : absl::StrSplit(query, '&')) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first == "after" && (!absl::SimpleAtoi(pair.second, after) || *after < 0)) *after = 0;
    if (pair.first == "life") *life = std::string(pair.second);
  }
}

}  // namespace

TextRoute PageRoutes(PageBoard& board, std::string key) {
  const auto page = std::make_shared<const std::string>(PageHtml());
  return [&board, key = std::move(key), page](const TextRequest& request) {
    if (request.path == "/") return PageAnswer(page, kHtml);
    absl::string_view topic = request.path;
    if (!absl::ConsumePrefix(&topic, "/data/") || !IsTopic(topic)) return NoSuchPath("/ or /metrics");
    if (!EqualSecrets(std::string(request.Header(kKeyHeader)), key)) {
      return Refusal("401 Unauthorized", "the key is missing or another coordinator's; `motley open` has the address with it");
    }
    int64_t after = 0;
    std::string life;
    ParseQuery(request.query, &after, &life);
    auto body = board.Read(std::string(topic), after, life);
    if (!body.ok()) return Refusal("503 Service Unavailable", absl::string_view(body.status().message()));
    if (*body != nullptr) return PageAnswer(*std::move(body), kJson);
    static const auto* const soon = new auto(std::make_shared<const std::string>("{\"again\":true}"));
    return PageAnswer(*soon, kJson);
  };
}

}  // namespace motley::coordinator
