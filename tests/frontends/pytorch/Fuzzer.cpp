// libFuzzer: any bytes as a .pt2 file, or as the text of a program in one
// (cmake -DCHARONIA_FUZZ=ON).
#include "frontends/Importer.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/frontends/pytorch/Files.h"

using namespace charonia;

/// An archive with this program, and weights for it to name.
static std::string archiveOf(const std::string &text) {
  test::ProgramFile program = test::simpleProgram();
  std::vector<test::ZipEntry> entries = program.entries();
  for (test::ZipEntry &entry : entries)
    if (entry.name == "model/models/model.json")
      entry.bytes = text;
  return test::zipFile(entries);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string input(reinterpret_cast<const char *>(data), size);
  mlir::MLIRContext context;
  frontend::importPyTorchBytes(
      input.starts_with("PK") ? input : archiveOf(input), "fuzz", {}, context);
  return 0;
}
