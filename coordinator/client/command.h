// What the command line is made of: each command adds its flags to the parser and says what it does. commands.cc has the table.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/client/connection.h"
#include "coordinator/client/exit_code.h"
#include "coordinator/client/screen.h"

namespace CLI {
class App;
}

namespace motley::client {

struct Context {
  std::string coordinator;  // HOST:PORT or unix:PATH
  bool json = false;
  ConnectionOptions connection;
  std::ostream& out;
  std::ostream& err;
  Screen screen;  // what `out` is written on; of width 0 with --wide

  // A connection, or UNAVAILABLE with what to do.
  absl::StatusOr<Connection> Connect() const {
    return Connection::Open(coordinator, connection, [this](const std::string& text) { Say(text); });
  }
  // What a user should know and no program reads.
  void Say(const std::string& text) const { err << "motley: " << text << std::endl; }
};

// Lines longer than the screen are broken at spaces. Every line ends, whether the text did or not.
void PrintProse(Context& context, const std::string& text);

using Action = std::function<Exit(Context&)>;

struct Command {
  const char* name;
  const char* help;
  Action (*add)(CLI::App& app);  // adds flags; the result runs after parsing
};

// In the order of the help.
const std::vector<Command>& Commands();

}  // namespace motley::client
