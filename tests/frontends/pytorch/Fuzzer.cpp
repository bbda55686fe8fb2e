// libFuzzer: any bytes as a .pt2 file, as the text of a program in one, or as a
// safetensors file of weights for one
// (cmake -DCHARONIA_FUZZ=ON).
#include "frontends/common/Replacements.h"
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

/// A program over the weights of a safetensors file.
static void replaceWeights(const std::string &file,
                           mlir::MLIRContext &context) {
  auto owner = std::make_shared<std::string>(file);
  frontend::SafeTensors tensors;
  if (tensors.addFile({{owner->data(), owner->size()}, owner}, "it"))
    return;
  frontend::Replacements replacements(std::move(tensors), "weights");
  frontend::ImportOptions options;
  options.replacements = &replacements;
  frontend::ImportResult result = frontend::importPyTorchBytes(
      test::zipFile(test::simpleProgram().entries()), "fuzz", options, context);
  replacements.finish(result);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string input(reinterpret_cast<const char *>(data), size);
  mlir::MLIRContext context;
  bool isArchive = input.starts_with("PK"), isText = input.starts_with("{");
  if (!isArchive && !isText) {
    replaceWeights(input, context);
    return 0;
  }
  frontend::importPyTorchBytes(isText ? archiveOf(input) : input, "fuzz", {},
                               context);
  return 0;
}
