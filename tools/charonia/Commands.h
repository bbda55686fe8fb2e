// The commands of `charonia`: their options, and what carries them out. Each
// returns the program's exit status, after a message if it is not Done.
#ifndef CHARONIA_TOOLS_CHARONIA_COMMANDS_H
#define CHARONIA_TOOLS_CHARONIA_COMMANDS_H

#include <cstdint>
#include <string>
#include <vector>

namespace charonia::tool {

struct CompileCommand {
  std::string model;
  /// Empty: the model's name with .engine, beside it.
  std::string engine;
  /// Names of the compiler's targets, "native" and "cuda".
  std::vector<std::string> targets{"cpu"};
  std::string precision = "fp32";
  std::vector<std::string> shapes;
  /// Of a file of several; empty: the only one.
  std::string program;
  /// Of models of TensorFlow; empty: as the model has them.
  std::string signature;
  std::vector<std::string> inputs, outputs;
  /// A file or folder of weights over those of the model; empty: its own.
  std::string weights;
  std::string cacheDir;
  bool noCache = false, noWaves = false;
  /// Measure schedules: "all", or for so many seconds; empty: do not.
  std::string tune;
  std::string tuningCache; ///< Empty: none.
  std::string dumpDir, stopAfter, printKernel;
  unsigned threads = 0;
  bool quiet = false, verbose = false;
  /// Seconds and megabytes (10^6 bytes) that compiling may take; 0: any.
  double timeLimit = 0, memoryLimit = 0;
};
int run(const CompileCommand &command);
/// What --target and --stop-after may name.
std::vector<std::string> compileTargetNames();
std::vector<std::string> compileStageNames();
/// What is wrong with the text of a compile's --shape; empty: nothing.
std::string checkShapeRange(const std::string &text);

/// How far an engine file is trusted.
struct LoadFlags {
  bool noVerify = false;   ///< Do not compare the weights' checksum.
  bool noHostCode = false; ///< Run none of the engine's code on the CPU.
  std::string digest;      ///< SHA-256 that the file must have; empty: any.
};

/// What run, bench and compare have in common: an engine on a device with
/// inputs.
struct ExecutionOptions {
  std::string engine;
  /// "auto", "cpu", "cuda", "cuda:1".
  std::string device = "auto";
  std::string precision;
  std::string isa;
  int threads = 0;
  /// NAME=FILE.npy each, or FILE.npy for the one input that there is.
  std::vector<std::string> inputs;
  /// Shapes of inputs with random values: NAME=1x3x224x224, or the shape alone
  /// for the one input that there is.
  std::vector<std::string> shapes;
  /// Of random values.
  uint64_t seed = 0;
  bool noOverlap = false; ///< GPU: kernels one after the other.
  LoadFlags load;
};

struct RunCommand : ExecutionOptions {
  std::string outputDir;
  /// A JSON file: a list of {"engine", "inputs": {name: file}, "output_dir"}.
  std::string batch;
};
int run(const RunCommand &command);

struct BenchCommand : ExecutionOptions {
  double duration = 3, warmUp = 0.5;
  unsigned iterations = 0;
  bool noProfile = false;
  std::string json;
};
int run(const BenchCommand &command);

struct InspectCommand {
  std::string engine;
  bool json = false, kernels = false, fusion = false, memory = false,
       verify = false;
  /// Print the file's SHA-256 ("print"), which must be this one otherwise.
  std::string digest;
  /// Shapes to plan the memory for: NAME=1x3x224x224.
  std::vector<std::string> shapes;
};
int run(const InspectCommand &command);

struct CompareCommand : ExecutionOptions {
  std::string model;
  std::string with = "onnxruntime";
  std::string name, program, python, json;
  /// How PyTorch runs: "eager" or "compile".
  std::string peerMode = "eager";
  double duration = 1;
  unsigned rounds = 5;
};
int run(const CompareCommand &command);

} // namespace charonia::tool

#endif
