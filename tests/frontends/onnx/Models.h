// Small ONNX models for the importer's tests, written in ONNX's text syntax.
#ifndef CHARONIA_TESTS_FRONTENDS_ONNX_MODELS_H
#define CHARONIA_TESTS_FRONTENDS_ONNX_MODELS_H

#include "frontends/Importer.h"
#include "mlir/IR/MLIRContext.h"
#include "onnx/onnx_pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace charonia::test {

/// The model of a text without its header: "graph (...) => (...) { ... }".
::onnx::ModelProto parse(const std::string &graph, int opset = 18);

/// Imports and gives the diagnostics as text; checks that there is a module
/// exactly where there is no error.
std::string import(const ::onnx::ModelProto &model,
                   const frontend::ImportOptions &options = {});
std::string importBytes(const std::string &bytes);

/// A folder of its own, removed at the end, with files in it.
class Folder {
public:
  Folder();
  ~Folder();
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  void write(const std::string &name, const std::string &bytes) const;

private:
  std::string path;
};

} // namespace charonia::test

#endif
