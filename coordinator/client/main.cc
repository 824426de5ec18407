// motley: the command line.
#include <iostream>

#include "coordinator/client/cli.h"

int main(int argc, char** argv) { return motley::client::RunCli({argv + 1, argv + argc}, std::cout, std::cerr); }
