// libFuzzer: bytes as a frozen graph, as a SavedModel with sound variables, as
// a table of variables, or as a graph that is text (cmake -DCHARONIA_FUZZ=ON).
// The first byte chooses.
#include "frontends/Importer.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/frontends/tensorflow/Files.h"

using namespace charonia;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  auto files = test::SavedFiles().files();
  if (data[0] % 4 == 0)
    files = {{"graph.pb", bytes}};
  else if (data[0] % 4 == 3)
    files = {{"graph.pbtxt", bytes}};
  else
    files[data[0] % 4 == 1 ? "saved_model.pb" : "variables/variables.index"] =
        bytes;
  mlir::MLIRContext context;
  frontend::importTensorFlowFiles(files, "fuzz", {}, context);
  return 0;
}
