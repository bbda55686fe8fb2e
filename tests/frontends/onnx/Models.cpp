#include "tests/frontends/onnx/Models.h"
#include "frontends/onnx/Schema.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include <fstream>

using namespace charonia;

::onnx::ModelProto test::parse(const std::string &graph, int opset) {
  ::onnx::ModelProto model;
  std::string text =
      "<ir_version: 9, opset_import: [\"\" : " + std::to_string(opset) +
      "]>\n" + graph;
  EXPECT_EQ(frontend::onnx::parseText(text, model), "");
  return model;
}

static std::string run(const std::string &bytes,
                       const frontend::ImportOptions &options) {
  mlir::MLIRContext context;
  auto result = frontend::importOnnxBytes(bytes, "test.onnx", options, context);
  bool hasError = llvm::any_of(result.diagnostics, [](const auto &diagnostic) {
    return diagnostic.severity == frontend::Diagnostic::Severity::Error;
  });
  EXPECT_EQ(hasError, !result.module);
  EXPECT_TRUE(!result.module || succeeded(mlir::verify(*result.module)));
  return result.toString();
}

std::string test::importBytes(const std::string &bytes) {
  return run(bytes, {});
}
std::string test::import(const ::onnx::ModelProto &model,
                         const frontend::ImportOptions &options) {
  return run(model.SerializeAsString(), options);
}

test::Folder::Folder() {
  llvm::SmallString<128> created;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("charonia", created));
  path = created.str().str();
}
test::Folder::~Folder() { llvm::sys::fs::remove_directories(path); }
void test::Folder::write(const std::string &name,
                         const std::string &bytes) const {
  std::ofstream(*this / name, std::ios::binary) << bytes;
}
