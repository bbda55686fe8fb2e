// charonia-import: prints a model as the importer gives it, for tests and for
// the curious.
#include "frontends/Importer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;
using namespace charonia;

static cl::opt<std::string>
    input(cl::Positional, cl::desc("<model.onnx | model.onnxtxt | model.pt2>"));
static cl::opt<std::string> output("o", cl::desc("Output file"),
                                   cl::value_desc("file"), cl::init("-"));
static cl::list<std::string> shapes("shape", cl::desc("Shape of an input"),
                                    cl::value_desc("x=1..8..64x3x224x224"));
static cl::opt<std::string> signature("signature",
                                      cl::desc("Signature of a SavedModel"));
static cl::list<std::string> inputs("inputs", cl::CommaSeparated,
                                    cl::desc("Placeholders of a graph"));
static cl::list<std::string> outputs("outputs", cl::CommaSeparated,
                                     cl::desc("Outputs of a graph"));
static cl::opt<bool> locations("locations",
                               cl::desc("Print each operator's node"));
static cl::opt<bool> quiet("quiet",
                           cl::desc("Print no module, only diagnostics"));
static cl::opt<bool>
    nodes("nodes",
          cl::desc("Print the operator and name of each node that is imported "
                   "instead of the module"));
static cl::opt<bool>
    listOperators("list-operators",
                  cl::desc("Print the ONNX operators that have a row"));

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv,
                              "Prints a model in the graph dialect\n");
  if (listOperators) {
    for (const auto &op : frontend::listOnnxOperators())
      llvm::outs() << (op.domain.empty() ? "" : op.domain + ".") << op.name
                   << " " << op.firstVersion << ".." << op.lastVersion << "\n";
    return 0;
  }
  frontend::ImportOptions options;
  for (const std::string &shape : shapes)
    if (std::string error = frontend::parseShapeOption(shape, options.shapes);
        !error.empty()) {
      llvm::errs() << "error: " << error << "\n";
      return 1;
    }
  options.signature = signature;
  options.inputs.assign(inputs.begin(), inputs.end());
  options.outputs.assign(outputs.begin(), outputs.end());
  if (nodes)
    options.progress = [](const std::string &node, const std::string &op) {
      llvm::outs() << op << " " << node << "\n";
    };
  mlir::MLIRContext context;
  frontend::ImportResult result =
      frontend::importModel(input, options, context);
  llvm::errs() << result.toString();
  if (!result.module)
    return 1;
  if (quiet || nodes)
    return 0;
  std::error_code error;
  llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_Text);
  if (error) {
    llvm::errs() << "error: " << output << ": " << error.message() << "\n";
    return 1;
  }
  mlir::OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64);
  if (locations)
    flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  result.module->print(file.os(), flags);
  file.keep();
  return 0;
}
