#include "tools/charonia/CommandLine.h"
#include "tools/charonia/Checks.h"
#include "tools/charonia/Commands.h"
#include "tools/charonia/Console.h"
#include "tools/charonia/HelpFormatter.h"

#include "charonia/runtime.h"

namespace charonia::tool {
namespace {

constexpr int mostThreads = 1024; // the runtime's limit

CLI::Option *addThreads(CLI::App &app, auto &threads, const char *what,
                        const char *none) {
  return app.add_option("--threads", threads, what)
      ->type_name("N")
      ->default_str(none)
      ->check(count(0, mostThreads));
}

CLI::Option *addShapes(CLI::App &app, std::vector<std::string> &shapes,
                       const char *what) {
  return app.add_option("--shape", shapes, what)
      ->type_name("[NAME=]1x3x224x224")
      ->allow_extra_args(false)
      ->check(shape());
}

void addLoadFlags(CLI::App &app, LoadFlags &flags) {
  app.add_flag("--no-verify", flags.noVerify,
               "Do not compare the weights' checksum, which reads them all: "
               "damaged ones would give wrong results");
  app.add_flag("--no-host-code", flags.noHostCode,
               "Run none of the engine's code on the CPU");
  app.add_option("--digest", flags.digest,
                 "SHA-256 that the engine's file must have, as inspect "
                 "--digest prints it")
      ->type_name("HEX")
      ->default_str("any")
      ->check(sha256());
}

void addExecutionOptions(CLI::App &app, ExecutionOptions &options) {
  app.add_option("--input", options.inputs,
                 "An input's values; the name may be left out where the engine "
                 "has one input")
      ->type_name("[NAME=]FILE.npy")
      ->allow_extra_args(false);
  addShapes(app, options.shapes,
            "Shape of an input with random values; otherwise the sizes that "
            "other inputs determine, also by what the engine needs of them, "
            "and those the engine was tuned for");
  app.add_option("--seed", options.seed,
                 "Of random values: floating point from -2 to 2, integers of 8 "
                 "bits their whole range, wider ones and bool 0 or 1 (good as "
                 "ids, masks and positions)")
      ->type_name("N")
      ->capture_default_str()
      ->check(seed());
  app.add_option("--device", options.device,
                 "auto, cpu, cuda or cuda:N; auto takes the first GPU if the "
                 "engine has code for it, else the CPU, and says why")
      ->type_name("DEVICE")
      ->capture_default_str()
      ->check(device());
  app.add_option("--precision", options.precision,
                 "Only a program of this precision")
      ->type_name("P")
      ->default_str("any");
  addThreads(app, options.threads,
             "CPU threads, 1 to 1024; 0: CHARONIA_THREADS, or the physical "
             "cores",
             "0");
  app.add_option("--isa", options.isa,
                 "The best CPU instruction set to use: x86-64-v3, x86-64-v4 or "
                 "x86-64-v4-vnni")
      ->type_name("ISA")
      ->default_str("what this CPU has")
      ->check(oneOf("instruction set",
                    {"x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"}));
  app.add_flag("--no-overlap", options.noOverlap,
               "GPU: start each kernel when the one before it has ended, to "
               "look for errors; the results are the same");
  addLoadFlags(app, options.load);
}

void addJson(CLI::App &app, std::string &path) {
  // Standard output has the table.
  CLI::Validator isFile(
      [](std::string &text) {
        return text == "-" ? std::string("'-' names no file; /dev/stdout is "
                                         "one, behind what is printed")
                           : std::string();
      },
      "");
  app.add_option("--json", path, "Write the results there as JSON")
      ->type_name("FILE")
      ->check(isFile);
}

void addEngine(CLI::App &app, std::string &engine, bool required = true) {
  app.add_option("engine", engine, "The engine, a file of charonia compile")
      ->required(required);
}

/// Names with commas between them, of one or several uses of the option.
CLI::Option *addNames(CLI::App *app, const char *option,
                      std::vector<std::string> &names, const char *what) {
  return app
      ->add_option_function<std::vector<std::string>>(
          option,
          [&names](const std::vector<std::string> &lists) {
            for (const std::string &list : lists)
              for (std::string &name : splitList(list))
                names.push_back(std::move(name));
          },
          what)
      ->allow_extra_args(false)
      ->check(listOfNames());
}

/// For looking inside the compiler.
void addStages(CLI::App &app, CompileCommand &options) {
  app.add_option(
         "--dump-dir", options.dumpDir,
         "Write the model after each stage there, and the code of kernels")
      ->type_name("DIR");
  app.add_option("--stop-after", options.stopAfter,
                 "Print the model after this stage and stop: " +
                     joined(compileStageNames()))
      ->type_name("STAGE")
      ->excludes("--output")
      ->check(oneOf("stage", compileStageNames()));
  app.add_option("--print-kernel", options.printKernel,
                 "Print this kernel from graph to code, and write no engine")
      ->type_name("NAME")
      ->excludes("--output");
}

void addLimits(CLI::App &c, CompileCommand &options) {
  auto limit = [&](const char *name, double &value, const char *what) {
    return c.add_option(name, value, what)->default_str("none");
  };
  limit("--time-limit", options.timeLimit,
        "Give up after so long, and say what took the time")
      ->check(positive())
      ->type_name("SECONDS");
  limit("--memory-limit", options.memoryLimit,
        "Give up where more memory is in use, mapped files aside")
      ->check(megabytes())
      ->type_name("MB");
}

void addTuning(CLI::App &c, CompileCommand &options) {
  c.add_flag("--tune{all}", options.tune,
             "Measure on this machine's devices which of the cost model's "
             "candidates products and attention are fastest with; "
             "--tune=SECONDS starts no kernel after that")
      ->check(check([](const std::string &text) {
        std::string copy = text;
        return text == "all" ? "" : seconds()(copy);
      }));
  c.add_option("--tuning-cache", options.tuningCache,
               "What was measured, for compiles to come, also on machines "
               "without the device; without --tune kernels that are not in it "
               "are left to the cost model")
      ->type_name("FILE")
      ->default_str("none")
      ->check(given());
}

CLI::App *addCompile(CLI::App &app, CompileCommand &options) {
  CLI::App *c = app.add_subcommand("compile", "Compiles a model to an engine");
  c->add_option("model", options.model,
                "The model: .onnx, .onnxtxt, .pt2, a SavedModel's folder, .pb, "
                ".pbtxt, or a .mlir of --dump-dir")
      ->required();
  c->add_option("-o,--output", options.engine, "The engine to write")
      ->type_name("FILE")
      ->default_str("the model's name with .engine, beside it")
      ->check(given());
  std::vector<std::string> targets = compileTargetNames();
  targets.insert(targets.begin(), {"native", "cuda"});
  c->add_option_function<std::vector<std::string>>(
       "--target",
       [&options](const std::vector<std::string> &lists) {
         options.targets.clear();
         for (const std::string &list : lists)
           for (std::string &name : splitList(list))
             options.targets.push_back(std::move(name));
       },
       "What the engine runs on, several with commas: cpu (x86-64-v3, "
       "x86-64-v4, and x86-64-v4-vnni where it gains), native (this CPU, and "
       "this machine's GPUs if "
       "it has any), cuda (this machine's GPUs), or one of " +
           joined({targets.begin() + 3, targets.end()}))
      ->allow_extra_args(false)
      ->type_name("T,...")
      ->default_str("cpu")
      ->check(listOf("target", targets));
  c->add_option("--precision", options.precision,
                "Of values between kernels and of dot products: fp32, tf32, "
                "fp16 or bf16")
      ->type_name("P")
      ->capture_default_str()
      ->check(oneOf("precision", {"fp32", "tf32", "fp16", "bf16"}));
  c->add_option("--shape", options.shapes,
                "An input's shape; a dimension is a size or MIN..OPT..MAX "
                "(otherwise as the model has it: open ones 1..1048576, tuned "
                "for 1 if they come first and for 128 elsewhere)")
      ->type_name("NAME=1..8..64x3x224x224")
      ->allow_extra_args(false)
      ->check(check(checkShapeRange));
  c->add_option("--program", options.program,
                "Which program of a .pt2 file that holds several")
      ->type_name("NAME")
      ->default_str("the only one")
      ->check(given());
  c->add_option("--signature", options.signature,
                "SavedModel: the function to compile")
      ->type_name("NAME")
      ->default_str("serving_default, or the only one")
      ->check(given());
  addNames(c, "--inputs", options.inputs,
           "Graph of TensorFlow: its placeholders, in this order")
      ->type_name("NODE,...")
      ->default_str("all that are read");
  addNames(c, "--outputs", options.outputs,
           "Graph of TensorFlow: what to compute, in this order")
      ->type_name("NODE[:N],...")
      ->default_str("what no node reads");
  c->add_option("--weights", options.weights,
                "Weights to take over the model's own, by name: a .safetensors "
                "file, an index of several, or a folder with either")
      ->type_name("FILE|DIR")
      ->default_str("the model's")
      ->check(given());
  c->add_option("--cache-dir", options.cacheDir, "Folder of compiled kernels")
      ->type_name("DIR")
      ->default_str("~/.cache/charonia")
      ->check(given());
  c->add_flag("--no-cache", options.noCache, "Compile every kernel anew");
  c->add_flag("--no-waves", options.noWaves,
              "GPU: kernels one after another in the model's order, even those "
              "that need nothing of one another; least memory, and what is "
              "measured of a kernel is its own");
  addTuning(*c, options);
  addThreads(*c, options.threads, "Threads that compile, 1 to 1024; 0: all",
             "0");
  addStages(*c, options);
  addLimits(*c, options);
  c->add_flag("-v,--verbose", options.verbose,
              "Print how long each stage and the slowest kernels took");
  c->add_flag("-q,--quiet", options.quiet, "Print only errors");
  c->footer("Examples:\n"
            "  charonia compile model.onnx\n"
            "  charonia compile model.onnx --target native --precision fp16\n"
            "  charonia compile model.onnx -o out.engine --target "
            "cpu,sm_80,sm_90 --shape x=1..8..64x3x224x224\n");
  return c;
}

CLI::App *addRun(CLI::App &app, RunCommand &options) {
  CLI::App *r = app.add_subcommand(
      "run", "Runs an engine on inputs from files, or on random ones");
  addEngine(*r, options.engine, /*required=*/false);
  addExecutionOptions(*r, options);
  r->get_option("--input")->description(
      "An input's values; the name may be left out where the engine has one "
      "input. Without any, and where --shape is given, the other inputs are "
      "random");
  r->add_option("--output-dir", options.outputDir,
                "Folder for <output name>.npy, where '/' and the like become "
                "'_' and names that are taken get _2, _3, ...; without it a "
                "summary of each output is printed")
      ->type_name("DIR");
  r->add_option("--batch", options.batch,
                "Runs in one process: a JSON list of {\"engine\", \"inputs\", "
                "\"output_dir\"}; a line of JSON tells of each")
      ->type_name("FILE.json")
      ->excludes("engine")
      ->excludes("--input")
      ->excludes("--shape")
      ->excludes("--output-dir");
  r->footer("Examples:\n"
            "  charonia run model.engine\n"
            "  charonia run model.engine --shape 4x3x224x224 --seed 7\n"
            "  charonia run model.engine --input x.npy --output-dir out\n"
            "  charonia run model.engine --input ids=ids.npy --input "
            "mask=mask.npy --device cuda:1 --output-dir out\n");
  return r;
}

CLI::App *addBench(CLI::App &app, BenchCommand &options) {
  CLI::App *b = app.add_subcommand(
      "bench", "Measures an engine's latency and its kernels");
  addEngine(*b, options.engine);
  addExecutionOptions(*b, options);
  b->add_option("--duration", options.duration, "Seconds to measure")
      ->type_name("S")
      ->capture_default_str()
      ->check(seconds());
  b->add_option("--iterations", options.iterations,
                "Runs to measure, instead of a duration")
      ->type_name("N")
      ->check(count(1, 1'000'000'000));
  b->add_option("--warm-up", options.warmUp, "Seconds to run before")
      ->type_name("S")
      ->capture_default_str()
      ->check(seconds());
  b->add_flag("--no-profile", options.noProfile, "No table of kernels");
  addJson(*b, options.json);
  b->footer("Examples:\n"
            "  charonia bench model.engine\n"
            "  charonia bench model.engine --shape 8x3x224x224 --threads 4 "
            "--json bench.json\n");
  return b;
}

CLI::App *addInspect(CLI::App &app, InspectCommand &options) {
  CLI::App *i = app.add_subcommand("inspect", "Shows what an engine holds");
  addEngine(*i, options.engine);
  i->add_flag("--json", options.json, "Everything, as JSON");
  i->add_flag("--kernels", options.kernels,
              "The kernels and the operators fused into each");
  i->add_flag("--fusion", options.fusion,
              "What one kernel for two saves, or would and why it is not");
  i->add_flag("--memory", options.memory, "The buffers and the arena's plan");
  i->add_flag("--verify", options.verify, "Compare the checksums of all bytes");
  i->add_flag("--digest{print}", options.digest,
              "Print the file's SHA-256; --digest=HEX: it must be this one")
      ->check(check([](const std::string &text) {
        std::string copy = text;
        return text == "print" ? "" : sha256()(copy);
      }));
  addShapes(*i, options.shapes,
            "Shape of an input to plan for; otherwise what the engine was "
            "tuned for");
  i->footer("Examples:\n"
            "  charonia inspect model.engine --kernels\n"
            "  charonia inspect model.engine --memory --shape 8x3x224x224\n");
  return i;
}

CLI::App *addCompare(CLI::App &app, CompareCommand &options) {
  CLI::App *p = app.add_subcommand(
      "compare", "Accuracy and latency beside another runtime");
  p->add_option("model", options.model,
                "The model the engine was compiled from")
      ->required();
  addEngine(*p, options.engine);
  p->add_option(
       "--with", options.with,
       "The peer: onnxruntime (on the CPU, with IO binding), torch "
       "(the program of a .pt2 file, or the module that the model was "
       "exported from; captured as a CUDA graph on a GPU), tensorflow "
       "(a SavedModel or graph, on the CPU) or cublas (matrix products "
       "alone, on a GPU)")
      ->type_name("PEER")
      ->capture_default_str()
      ->check(oneOf("peer", {"onnxruntime", "torch", "tensorflow", "cublas"}));
  addExecutionOptions(*p, options);
  p->add_option("--name", options.name,
                "torch: the model's name in models/zoo.py")
      ->type_name("NAME")
      ->default_str("that of the file or its folder");
  p->add_option("--program", options.program,
                "torch: which program of a .pt2 file that holds several")
      ->type_name("NAME")
      ->default_str("the only one")
      ->check(given());
  p->add_option("--peer-mode", options.peerMode,
                "torch: eager, or compile (torch.compile, max-autotune)")
      ->type_name("MODE")
      ->capture_default_str()
      ->check(oneOf("mode", {"eager", "compile"}));
  p->add_option("--rounds", options.rounds, "Alternating rounds")
      ->type_name("N")
      ->capture_default_str()
      ->check(count(1, 100'000));
  p->add_option("--duration", options.duration, "Seconds of a round and side")
      ->type_name("S")
      ->capture_default_str()
      ->check(seconds());
  p->add_option("--python", options.python, "The interpreter that has the peer")
      ->type_name("FILE")
      ->default_str("CHARONIA_PYTHON, the project's own, or python3");
  addJson(*p, options.json);
  p->footer("Examples:\n"
            "  charonia compare model.onnx model.engine\n"
            "  charonia compare model.onnx model.engine --with torch --name "
            "resnet50 --device cuda\n"
            "  charonia compare model.pt2 model.engine --with torch "
            "--peer-mode compile\n");
  return p;
}

void checkNames(const ExecutionOptions &options) {
  requireDistinctNames("--input", options.inputs);
  requireDistinctNames("--shape", options.shapes);
}

/// The parser's own messages begin in different ways.
int failToParse(const CLI::App &app, const CLI::ParseError &error) {
  std::string text = error.what(), command = "charonia";
  for (const CLI::App *sub : app.get_subcommands())
    command += " " + sub->get_name();
  std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  // What ends the options is not what was one too many.
  if (unknown.size() > 1 && unknown[0] == "--")
    unknown.erase(unknown.begin());
  if (app.get_subcommands().empty() && error.get_name() == "RequiredError")
    text = (unknown.empty() ? "no command is given"
                            : "unknown command '" + unknown[0] + "'") +
           "; the commands are compile, run, bench, inspect and compare";
  else if (!unknown.empty())
    text = "unexpected argument '" + unknown[0] + "'";
  else if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] += 'a' - 'A';
  fail(printable(text) + "; see " + command + " --help");
  return Usage;
}

} // namespace

int runCommandLine(int argc, char **argv) {
  CLI::App app(
      "Compiles trained models to engines of fused kernels, and runs them.",
      "charonia");
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.set_version_flag("--version", "charonia " + std::string(version()));
  app.footer("Examples:\n"
             "  charonia compile model.onnx\n"
             "  charonia run model.engine\n"
             "  charonia bench model.engine\n"
             "  charonia compare model.onnx model.engine\n"
             "  charonia inspect model.engine --kernels\n\n"
             "charonia COMMAND --help tells of a command's options.\n"
             "Exit status: 0 done, 1 failed, 2 the command line is wrong.\n");
  CompileCommand compile;
  RunCommand execute;
  BenchCommand bench;
  InspectCommand inspect;
  CompareCommand compare;
  int status = Done;
  addCompile(app, compile)->callback([&] { status = run(compile); });
  addRun(app, execute)->callback([&] {
    if (execute.engine.empty() && execute.batch.empty())
      throw CLI::RequiredError("engine");
    checkNames(execute);
    status = run(execute);
  });
  addBench(app, bench)->callback([&] {
    checkNames(bench);
    status = run(bench);
  });
  addInspect(app, inspect)->callback([&] {
    requireDistinctNames("--shape", inspect.shapes);
    status = run(inspect);
  });
  addCompare(app, compare)->callback([&] {
    checkNames(compare);
    status = run(compare);
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &wanted) {
    return app.exit(wanted); // --help, --version
  } catch (const CLI::ParseError &error) {
    return failToParse(app, error);
  }
  return status;
}

} // namespace charonia::tool
