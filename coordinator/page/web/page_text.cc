#include "coordinator/page/web/page_text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/sha256.h"
#include "coordinator/page/web/page_parts.h"

namespace motley::coordinator {
namespace {

std::string SourceOf(absl::string_view text) {
  return absl::StrCat("'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(std::string(text)))), "'");
}

std::string Policy(absl::string_view connect) {
  const PageParts& parts = EmbeddedPage();
  return absl::StrCat("default-src 'none'; script-src ", SourceOf(parts.charts_script), " ", SourceOf(parts.script),
                      "; style-src ", SourceOf(parts.charts_style), " ", SourceOf(parts.style), "; img-src data:; connect-src ",
                      std::string(connect), "; base-uri 'none'; form-action 'none'");
}

std::string Html(absl::string_view head, absl::string_view data) {
  const PageParts& parts = EmbeddedPage();
  const auto in = [](absl::string_view tag, absl::string_view text) {
    const std::string name(tag);
    return absl::StrCat("<", name, ">", std::string(text), "</", name, ">");
  };
  return absl::StrReplaceAll(
      std::string(parts.html),
      {{"<!--head-->", std::string(head)},
       {"<!--style-->", in("style", parts.charts_style) + in("style", parts.style)},
       {"<!--script-->", std::string(data) + in("script", parts.charts_script) + in("script", parts.script)}});
}

}  // namespace

std::string PageHtml() { return Html(absl::StrCat("<meta name=\"page\" content=\"", PageDigest(), "\">"), ""); }

std::string ReportHtml(absl::string_view job, absl::string_view data_json) {
  // No text of the data ends its element.
  const std::string data = absl::StrReplaceAll(std::string(data_json), {{"<", "\\u003c"}});
  return Html(absl::StrCat("<meta http-equiv=\"Content-Security-Policy\" content=\"", Policy("'none'"),
                           "\"><meta name=\"report\" content=\"", std::string(job), "\">"),
              absl::StrCat("<script type=\"application/json\" id=\"data\">", data, "</script>"));
}

const std::string& PagePolicy() {
  static const auto* const policy = new std::string(Policy("'self'"));
  return *policy;
}

const std::string& PageDigest() {
  static const auto* const digest = [] {
    const PageParts& parts = EmbeddedPage();
    return new std::string(
        Sha256Hex(absl::StrCat(parts.html, parts.style, parts.script, parts.charts_style, parts.charts_script)).substr(0, 16));
  }();
  return *digest;
}

}  // namespace motley::coordinator
