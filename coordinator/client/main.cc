// motley: the command line.
#include <unistd.h>

#include <iostream>

#include "coordinator/client/cli.h"

int main(int argc, char** argv) {
  motley::client::Screen screen = motley::client::FindScreen(STDOUT_FILENO);
  screen.error_width = motley::client::FindScreen(STDERR_FILENO).width;
  return motley::client::RunCli({argv + 1, argv + argc}, std::cout, std::cerr, {}, screen);
}
