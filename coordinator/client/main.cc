// motley: the command line.
#include <unistd.h>

#include <iostream>

#include "coordinator/client/cli.h"

int main(int argc, char** argv) {
  return motley::client::RunCli({argv + 1, argv + argc}, std::cout, std::cerr, {}, motley::client::FindScreen(STDOUT_FILENO));
}
