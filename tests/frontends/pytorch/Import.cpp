#include "tests/frontends/pytorch/Import.h"

using namespace charonia;

std::string test::importPyTorch(const std::string &file,
                                const frontend::ImportOptions &options) {
  mlir::MLIRContext context;
  auto result = frontend::importPyTorchBytes(file, "m.pt2", options, context);
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
