// charonia: compiles trained models to engines, runs, measures and inspects
// them.
#include "tools/charonia/Commands.h"

#include "charonia/runtime.h"

#include <CLI/CLI.hpp>

using namespace charonia::tool;

namespace {

void addExecutionOptions(CLI::App &app, ExecutionOptions &options) {
  app.add_option("--input", options.inputs, "An input's values")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  app.add_option(
         "--device", options.device,
         "cpu, cuda or cuda:N; default: what the engine holds, cuda first")
      ->type_name("DEVICE");
  app.add_option("--precision", options.precision,
                 "Only a program of this precision")
      ->type_name("P");
  app.add_option("--threads", options.threads,
                 "CPU threads; default: the physical cores")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  app.add_option("--isa", options.isa, "The best CPU instruction set to use")
      ->check(CLI::IsMember({"x86-64-v3", "x86-64-v4"}));
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app(
      "Compiles trained models to engines of fused kernels, and runs them.",
      "charonia");
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       "charonia " + std::string(charonia::version()));
  int status = 0;

  CompileCommand compile;
  CLI::App *c = app.add_subcommand("compile", "Compiles a model to an engine");
  c->add_option("model", compile.model, "The model: .onnx, .onnxtxt or .mlir")
      ->required();
  c->add_option("-o,--output", compile.engine, "The engine to write")
      ->type_name("FILE");
  c->add_option("--target", compile.targets,
                "cpu, sm_80, sm_90, ...; several with commas")
      ->delimiter(',')
      ->type_name("T,...");
  c->add_option("--precision", compile.precision,
                "Of values between kernels and of dot products")
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
  c->add_option("--shape", compile.shapes,
                "An input's shape; a dimension is a size or MIN..OPT..MAX")
      ->type_name("x=1..8..64x3x224x224")
      ->allow_extra_args(false);
  c->add_option("--cache-dir", compile.cacheDir,
                "Folder of compiled kernels; default: ~/.cache/charonia")
      ->type_name("DIR");
  c->add_flag("--no-cache", compile.noCache, "Compile every kernel anew");
  c->add_option("--threads", compile.threads,
                "Threads that compile; default: all")
      ->type_name("N");
  c->add_option(
       "--dump-dir", compile.dumpDir,
       "Write the model after each stage there, and the code of kernels")
      ->type_name("DIR");
  c->add_option("--stop-after", compile.stopAfter,
                "Print the model after this stage and stop")
      ->type_name("STAGE");
  c->add_option("--print-kernel", compile.printKernel,
                "Print this kernel from graph to code")
      ->type_name("NAME");
  c->add_flag("-q,--quiet", compile.quiet, "Print only errors");
  c->callback([&] { status = run(compile); });

  RunCommand execute;
  CLI::App *r =
      app.add_subcommand("run", "Runs an engine on inputs from files");
  r->add_option("engine", execute.engine, "The engine");
  addExecutionOptions(*r, execute);
  r->add_option("--output-dir", execute.outputDir,
                "Folder for <output name>.npy")
      ->type_name("DIR");
  r->add_option("--batch", execute.batch,
                "Runs in one process: a JSON list of {\"engine\", \"inputs\", "
                "\"output_dir\"}")
      ->type_name("FILE.json");
  r->callback([&] { status = run(execute); });

  BenchCommand bench;
  CLI::App *b = app.add_subcommand(
      "bench", "Measures an engine's latency and its kernels");
  b->add_option("engine", bench.engine, "The engine")->required();
  addExecutionOptions(*b, bench);
  b->add_option("--shape", bench.shapes,
                "Shape of an input with random values; default: the optimum")
      ->type_name("NAME=1x3x224x224")
      ->allow_extra_args(false);
  b->add_option("--duration", bench.duration, "Seconds to measure")
      ->type_name("S");
  b->add_option("--iterations", bench.iterations,
                "Runs to measure, instead of a duration")
      ->type_name("N");
  b->add_option("--warm-up", bench.warmUp, "Seconds to run before")
      ->type_name("S");
  b->add_flag("--no-profile", bench.noProfile, "No table of kernels");
  b->add_option("--json", bench.json, "Write the results there")
      ->type_name("FILE");
  b->callback([&] { status = run(bench); });

  InspectCommand inspect;
  CLI::App *i = app.add_subcommand("inspect", "Shows what an engine holds");
  i->add_option("engine", inspect.engine, "The engine")->required();
  i->add_flag("--json", inspect.json, "Everything, as JSON");
  i->add_flag("--kernels", inspect.kernels,
              "The kernels and the operators fused into each");
  i->add_flag("--memory", inspect.memory, "The buffers and the arena's plan");
  i->add_flag("--verify", inspect.verify, "Compare the checksums of all bytes");
  i->add_option("--shape", inspect.shapes,
                "Shape of an input to plan for; default: the optimum")
      ->type_name("NAME=1x3x224x224")
      ->allow_extra_args(false);
  i->callback([&] { status = run(inspect); });

  CompareCommand compare;
  CLI::App *p = app.add_subcommand(
      "compare", "Accuracy and latency beside another runtime");
  p->add_option("model", compare.model,
                "The model the engine was compiled from")
      ->required();
  p->add_option("engine", compare.engine, "The engine")->required();
  p->add_option("--with", compare.with, "The peer")
      ->check(CLI::IsMember({"onnxruntime", "torch", "cublas"}));
  addExecutionOptions(*p, compare);
  p->add_option("--shape", compare.shapes,
                "Shape of an input with random values; default: the optimum")
      ->type_name("NAME=1x3x224x224")
      ->allow_extra_args(false);
  p->add_option("--name", compare.name,
                "torch: the model's name in models/zoo.py");
  p->add_option("--rounds", compare.rounds, "Alternating rounds")
      ->type_name("N");
  p->add_option("--duration", compare.duration, "Seconds of a round and side")
      ->type_name("S");
  p->add_option("--python", compare.python, "The interpreter that has the peer")
      ->type_name("FILE");
  p->add_option("--json", compare.json, "Write the results there")
      ->type_name("FILE");
  p->callback([&] { status = run(compare); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // Usage errors have one status of their own; --help and --version have 0.
    return app.exit(error) == 0 ? 0 : 2;
  }
  return status;
}
