// The commands of `charonia`: their options, and what carries them out. Each
// returns the program's exit status: 0, or 1 after a message on standard error.
#ifndef CHARONIA_TOOLS_CHARONIA_COMMANDS_H
#define CHARONIA_TOOLS_CHARONIA_COMMANDS_H

#include <string>
#include <vector>

namespace charonia::tool {

struct CompileCommand {
  std::string model, engine;
  std::vector<std::string> targets{"cpu"};
  std::string precision = "fp32";
  std::vector<std::string> shapes;
  std::string cacheDir;
  bool noCache = false;
  std::string dumpDir, stopAfter, printKernel;
  unsigned threads = 0;
  bool quiet = false;
};
int run(const CompileCommand &command);

/// What run, bench and compare have in common: an engine on a device with
/// inputs.
struct ExecutionOptions {
  std::string engine;
  std::string device;
  std::string precision;
  std::string isa;
  int threads = 0;
  /// NAME=FILE.npy each.
  std::vector<std::string> inputs;
};

struct RunCommand : ExecutionOptions {
  std::string outputDir;
  /// A JSON file: a list of {"engine", "inputs": {name: file}, "output_dir"}.
  std::string batch;
};
int run(const RunCommand &command);

struct BenchCommand : ExecutionOptions {
  /// Shapes of inputs that no file gives: NAME=1x3x224x224.
  std::vector<std::string> shapes;
  double duration = 3, warmUp = 0.5;
  unsigned iterations = 0;
  bool noProfile = false;
  std::string json;
};
int run(const BenchCommand &command);

struct InspectCommand {
  std::string engine;
  bool json = false, kernels = false, memory = false, verify = false;
  /// Shapes to plan the memory for: NAME=1x3x224x224.
  std::vector<std::string> shapes;
};
int run(const InspectCommand &command);

struct CompareCommand : ExecutionOptions {
  std::string model;
  std::string with = "onnxruntime";
  std::vector<std::string> shapes;
  std::string name, python, json;
  double duration = 1;
  unsigned rounds = 5;
  uint64_t seed = 0;
};
int run(const CompareCommand &command);

} // namespace charonia::tool

#endif
