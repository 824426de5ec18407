// motley: the command line.
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "common/base/standard_streams.h"
#include "coordinator/client/cli.h"

int main(int argc, char** argv) {
  motley::HoldStandardStreams();
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error that names it
  motley::client::Screen screen = motley::client::FindScreen(STDOUT_FILENO);
  screen.error_width = motley::client::FindScreen(STDERR_FILENO).width;
  return motley::client::RunCli({argv + 1, argv + argc}, std::cout, std::cerr, {}, screen);
}
