// libFuzzer: any bytes as an ONNX model (cmake -DCHARONIA_FUZZ=ON).
#include "frontends/Importer.h"
#include "mlir/IR/MLIRContext.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::MLIRContext context;
  charonia::frontend::importOnnxBytes(
      llvm::StringRef(reinterpret_cast<const char *>(data), size), "fuzz", {},
      context);
  return 0;
}
