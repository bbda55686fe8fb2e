// charonia: compiles trained models to engines, runs, measures and inspects
// them.
#include "tools/charonia/CommandLine.h"
#include "tools/charonia/Console.h"

int main(int argc, char **argv) {
  using namespace charonia::tool;
  return guarded([&] { return runCommandLine(argc, argv); });
}
