#include "tests/frontends/tensorflow/Import.h"
#include "frontends/Importer.h"
#include "mlir/IR/MLIRContext.h"

using namespace charonia;

std::string
test::importTensorFlow(const std::map<std::string, std::string> &files,
                       const frontend::ImportOptions &options) {
  mlir::MLIRContext context;
  auto result = frontend::importTensorFlowFiles(files, "m", options, context);
  bool hasError = llvm::any_of(result.diagnostics, [](const auto &diagnostic) {
    return diagnostic.severity == frontend::Diagnostic::Severity::Error;
  });
  EXPECT_EQ(hasError, !result.module);
  std::string text = result.toString();
  llvm::raw_string_ostream stream(text);
  if (result.module)
    result.module->print(stream);
  return text;
}
std::string test::importGraph(const tf::proto::Graph &graph) {
  return importTensorFlow({{"graph.pb", test::bytesOf(graph)}});
}
