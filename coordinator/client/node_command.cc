#include "coordinator/client/node_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/clean_text.h"
#include "coordinator/client/format.h"
#include "coordinator/client/json.h"
#include "coordinator/client/probe_command.h"
#include "coordinator/client/table.h"

namespace motley::client {
namespace {

constexpr int kUsageOfData = 65;

struct Options {
  std::string ttl = "1h", id, node;
  bool reusable = false;
  ProbeFlags probe;
};

// "90m", "12h", "7d". Empty: it is none of these.
std::optional<int64_t> SecondsOf(const std::string& text) {
  absl::Duration time;
  int64_t days = 0;
  if (text.ends_with('d') && absl::SimpleAtoi(text.substr(0, text.size() - 1), &days) && days > 0 && days < 100'000)
    return days * 24 * 3600;
  if (!absl::ParseDuration(text, &time) || time < absl::Seconds(1) || time == absl::InfiniteDuration()) return std::nullopt;
  return absl::ToInt64Seconds(time);
}

// Where all addresses are listened to, which of them is dialed is not known here.
std::string DialedAs(const std::string& listen) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort("workers.listen", listen, 0);
  const bool any = !parsed.ok() || parsed->host == "0.0.0.0" || parsed->host == "::";
  return any ? absl::StrCat("ADDRESS-OF-THIS-MACHINE:", parsed.ok() ? parsed->port : 7073) : CleanLine(listen);
}

// Calls, and has `print` say the answer where JSON is not wanted.
template <typename Request, typename Response, typename Print>
Exit CallAndSay(Context& context, grpc::Status (Connection::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request, Print print) {
  auto connection = context.Connect();
  if (!connection.ok()) return FromServer(connection.status());
  const absl::StatusOr<Response> response = connection->Call(method, request);
  if (!response.ok()) return FromServer(response.status());
  if (context.json) {
    PrintDocument(context.out, ToJson(*response));
  } else {
    print(*response);
  }
  return {};
}

Exit MakeToken(Context& context, const Options& options) {
  const std::optional<int64_t> seconds = SecondsOf(options.ttl);
  if (!seconds) return {kUsageOfData, absl::StrCat("--ttl ", Echo(options.ttl), ": how long is that? say 90m, 12h or 7d")};
  v1::CreateTokenRequest request;
  request.set_ttl_seconds(*seconds);
  request.set_reusable(options.reusable);
  return CallAndSay(context, &Connection::Stub::CreateToken, request, [&](const v1::CreateTokenResponse& response) {
    // Alone on the standard output, for scripts.
    context.out << CleanLine(response.token()) << "\n";
    context.Say(absl::StrCat("good ", options.reusable ? "for any number of nodes" : "for one node", " until ",
                             FormatTime(response.expires_unix_ms()), "; not shown again. On the machine that joins:"));
    context.Say(
        absl::StrCat("  motley-worker --join TOKEN --coordinator ", DialedAs(response.workers_listen()), " --root FOLDER"));
    context.Say("  (--coordinator again for each machine that may take the coordinator's place)");
  });
}

Exit ListTokens(Context& context) {
  return CallAndSay(context, &Connection::Stub::ListTokens, v1::ListTokensRequest(), [&](const v1::ListTokensResponse& response) {
    if (response.tokens().empty()) {
      context.out << "no tokens; 'motley node token' makes one\n";
      return;
    }
    Table table({"TOKEN", "STATE", "FOR", "JOINED", "UNTIL"});
    for (const v1::Token& token : response.tokens()) {
      table.Add({token.id(), token.state(), token.reusable() ? "any number" : "one node", absl::StrCat(token.joins()),
                 FormatTime(token.expires_unix_ms())});
    }
    table.Print(context.out, context.screen);
  });
}

Exit RevokeToken(Context& context, const std::string& id) {
  v1::RevokeTokenRequest request;
  request.set_id(id);
  return CallAndSay(context, &Connection::Stub::RevokeToken, request, [&](const v1::RevokeTokenResponse&) {
    context.out << "token " << CleanLine(id) << " is revoked; nodes that joined by it stay members\n";
  });
}

Exit ForgetNode(Context& context, const std::string& node) {
  v1::ForgetNodeRequest request;
  request.set_node(node);
  return CallAndSay(context, &Connection::Stub::ForgetNode, request, [&](const v1::ForgetNodeResponse&) {
    context.out << "node " << CleanLine(node) << " is forgotten; a member comes back with a new token\n";
  });
}

Exit MeasureNode(Context& context, const std::string& node) {
  v1::MeasureNodeRequest request;
  request.set_node(node);
  return CallAndSay(context, &Connection::Stub::MeasureNode, request, [&](const v1::MeasureNodeResponse& response) {
    context.out << "node " << CleanLine(node) << " is measured again: "
                << (response.job_id().empty()
                        ? "the next job that uses it does so first"
                        : absl::StrCat("job ", CleanLine(response.job_id()), " saves, measures and goes on"))
                << "\n";
  });
}

Exit RotateAuthority(Context& context) {
  return CallAndSay(
      context, &Connection::Stub::RotateAuthority, v1::RotateAuthorityRequest(),
      [&](const v1::RotateAuthorityResponse& response) {
        context.out << "authority " << response.authority()
                    << " was made; the one before ends when every member has renewed ('motley events' says so), and "
                       "tokens of before count no more then\n";
      });
}

}  // namespace

Action AddNode(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* token = app.add_subcommand("token", "a token by which a machine joins: motley-worker --join TOKEN");
  token->add_option("--ttl", options->ttl, "how long it is good: 90m, 12h, 7d; 90 days at most")->capture_default_str();
  token->add_flag("--reusable", options->reusable, "for any number of nodes, else for one");
  CLI::App* tokens = app.add_subcommand("tokens", "the tokens and what became of them");
  CLI::App* revoke = app.add_subcommand("revoke", "a token lets nobody in any more");
  revoke->add_option("TOKEN", options->id, "its id, as 'motley node tokens' has it")->required();
  CLI::App* forget = app.add_subcommand(
      "forget", "the node is no member any more, and its session ends at once; or one that is gone is listed no more");
  forget->add_option("NAME", options->node, "the node")->required();
  CLI::App* measure =
      app.add_subcommand("measure", "its devices are measured again: the job that uses it saves first and goes on");
  measure->add_option("NODE", options->node, "the node")->required();
  AddProbeFlags(*measure, &options->probe);
  CLI::App* rotate =
      app.add_subcommand("rotate-authority", "a new key for the cluster's certificate authority; members renew by themselves");
  for (CLI::App* sub : {token, tokens, revoke, forget, measure, rotate}) sub->fallthrough();
  app.require_subcommand(1);
  return [=](Context& context) {
    if (token->parsed()) return MakeToken(context, *options);
    if (tokens->parsed()) return ListTokens(context);
    if (revoke->parsed()) return RevokeToken(context, options->id);
    if (measure->parsed() && options->probe.probe) return ProbeNode(context, options->node, options->probe);
    if (measure->parsed()) return MeasureNode(context, options->node);
    if (forget->parsed()) return ForgetNode(context, options->node);
    return RotateAuthority(context);
  };
}

}  // namespace motley::client
