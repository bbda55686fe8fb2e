// charonia-simt: runs an engine's GPU kernels thread by thread on the CPU and
// prints what is wrong with them. Exit status 1 if anything is.
#include "codegen/gpu/GpuCodegen.h"
#include "tools/charonia-simt/SimtEngine.h"
#include "tools/charonia/Console.h"
#include "tools/charonia/Elements.h"
#include "tools/charonia/OutputFiles.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace charonia;
using namespace charonia::tool;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("Options");
cl::opt<std::string> enginePath(cl::Positional, cl::Required,
                                cl::desc("<m.engine>"), cl::cat(category));
cl::opt<std::string>
    dump("dump-dir", cl::Required,
         cl::desc("Folder that charonia compile --target sm_90 --dump-dir "
                  "wrote with the engine"),
         cl::cat(category));
cl::opt<std::string> arch("arch",
                          cl::desc("Of the engine's programs the one for this "
                                   "GPU, as sm_90"),
                          cl::cat(category));
cl::opt<std::string> precision("precision",
                               cl::desc("Of the engine's programs the one of "
                                        "this precision, as fp16"),
                               cl::cat(category));
cl::list<std::string>
    inputFiles("input",
               cl::desc("NAME=FILE.npy; inputs that are not given are "
                        "random, of the optimum shape"),
               cl::cat(category));
cl::opt<std::string> outputDir("output-dir", cl::desc("Folder for the outputs"),
                               cl::cat(category));
cl::opt<std::string> reportPath("report",
                                cl::desc("JSON file of findings and of bank "
                                         "conflicts of each access"),
                                cl::cat(category));
cl::opt<uint64_t> seed("seed",
                       cl::desc("Order of blocks and warps; 0: ascending"),
                       cl::init(0), cl::cat(category));
cl::opt<interpreter::CopyTiming> copies(
    "copies", cl::desc("When asynchronous copies land"),
    cl::values(clEnumValN(interpreter::CopyTiming::Late, "late",
                          "when they are waited for"),
               clEnumValN(interpreter::CopyTiming::Early, "early", "at once"),
               clEnumValN(interpreter::CopyTiming::Seeded, "seeded",
                          "at any time between")),
    cl::init(interpreter::CopyTiming::Late), cl::cat(category));

Result<std::vector<Array>> readInputs(const Signature &signature) {
  std::vector<Array> arrays(signature.inputs.size());
  for (const std::string &text : inputFiles) {
    auto [name, path] = llvm::StringRef(text).split('=');
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature.findInput(name.str()));
    CHARONIA_ASSIGN_OR_RETURN(
        arrays[index], readNpy(path.str(), signature.inputs[index].dtype));
    if (arrays[index].dtype != signature.inputs[index].dtype)
      return Status(StatusCode::InvalidArgument,
                    path.str() + ": has another type than the input '" +
                        name.str() + "'");
  }
  std::vector<int64_t> optimum;
  for (const Symbol &symbol : signature.symbols)
    optimum.push_back(symbol.opt);
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].data)
      continue;
    CHARONIA_ASSIGN_OR_RETURN(
        std::vector<int64_t> shape,
        signature.evaluateShape(signature.inputs[i], optimum));
    CHARONIA_ASSIGN_OR_RETURN(
        arrays[i], Array::allocate(signature.inputs[i].dtype, shape));
    fillRandom(arrays[i], seed * 1000 + i);
  }
  return arrays;
}

Status writeOutputs(const Signature &signature,
                    const std::vector<Array> &outputs) {
  if (outputDir.empty())
    return Status::ok();
  if (std::error_code error = llvm::sys::fs::create_directories(outputDir))
    return Status(StatusCode::Io, outputDir + ": " + error.message());
  std::vector<std::string> names;
  for (const TensorSpec &spec : signature.outputs)
    names.push_back(spec.name);
  std::vector<std::string> files = outputFileNames(names);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string path = outputDir + "/" + files[i];
    CHARONIA_RETURN_IF_ERROR(writeNpy(path, outputs[i].dtype, outputs[i].shape,
                                      outputs[i].data.get()));
    llvm::outs() << printable(names[i]) << ": " << path << '\n';
  }
  return Status::ok();
}

Status writeReport(const interpreter::Report &report) {
  if (reportPath.empty())
    return Status::ok();
  llvm::json::Array findings, banks;
  for (const interpreter::Finding &f : report.findings)
    findings.push_back(llvm::json::Object{{"kind", findingName(f.kind)},
                                          {"kernel", f.kernel},
                                          {"operation", f.operation},
                                          {"other", f.other},
                                          {"details", f.details},
                                          {"count", int64_t(f.count)}});
  for (const interpreter::BankStatistic &b : report.banks)
    banks.push_back(llvm::json::Object{{"kernel", b.kernel},
                                       {"operation", b.operation},
                                       {"requests", int64_t(b.requests)},
                                       {"maximum", b.maximum},
                                       {"mean", b.mean()}});
  std::error_code error;
  llvm::raw_fd_ostream file(reportPath, error);
  if (!error) {
    file << llvm::formatv("{0:2}\n",
                          llvm::json::Value(llvm::json::Object{
                              {"findings", std::move(findings)},
                              {"banks", std::move(banks)},
                              {"instructions", int64_t(report.instructions)}}));
    file.close();
    error = file.error();
    file.clear_error();
  }
  return error ? Status(StatusCode::Io, reportPath + ": " + error.message())
               : Status::ok();
}

Status execute(mlir::MLIRContext &context, interpreter::Report &report) {
  CHARONIA_ASSIGN_OR_RETURN(
      SimtEngine engine,
      SimtEngine::open(enginePath, dump, arch, precision, context));
  llvm::errs() << "note: running " << engine.description() << '\n';
  CHARONIA_ASSIGN_OR_RETURN(std::vector<Array> inputs,
                            readInputs(engine.signature()));
  SimtOptions options{seed, copies};
  CHARONIA_ASSIGN_OR_RETURN(std::vector<Array> outputs,
                            engine.run(inputs, options, report));
  CHARONIA_RETURN_IF_ERROR(writeOutputs(engine.signature(), outputs));
  return writeReport(report);
}

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Runs an engine's GPU kernels without a GPU\n");
  mlir::DialectRegistry registry;
  gpu::registerGpuCodegen(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  interpreter::Report report;
  Status status = execute(context, report);
  for (const interpreter::Finding &f : report.findings) {
    llvm::errs() << "error: " << f.kernel << ": " << findingName(f.kind) << ": "
                 << f.operation << ", " << f.details;
    if (!f.other.empty())
      llvm::errs() << "; the other is " << f.other;
    if (f.count > 1)
      llvm::errs() << " (" << f.count << " times)";
    llvm::errs() << '\n';
  }
  if (!status)
    llvm::errs() << "error: " << status.message() << '\n';
  return status && report.findings.empty() ? 0 : 1;
}
