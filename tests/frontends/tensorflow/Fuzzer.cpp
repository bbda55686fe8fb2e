// libFuzzer: any bytes as a frozen graph, as a graph that is text, as a
// SavedModel with sound variables, or as a table of variables
// (cmake -DCHARONIA_FUZZ=ON). CHARONIA_FUZZED_FILE says which of them.
#include "frontends/Importer.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/frontends/tensorflow/Files.h"

using namespace charonia;

static const std::string fuzzedFile = CHARONIA_FUZZED_FILE,
                         tableFile = "variables/variables.index";

/// The SavedModel that what is fuzzed is a file of.
static const std::map<std::string, std::string> &soundFiles() {
  static const auto *files = new auto(test::SavedFiles().files());
  return *files;
}

/// Reads all that a table names, more than a model asks for; shards are those
/// of the sound files.
static void readVariables(const std::string &table,
                          mlir::MLIRContext &context) {
  constexpr int maxKeys = 64;
  test::tf::OpenFile open = [&](const std::string &name, frontend::Problem &) {
    const std::string &bytes =
        name == "variables.index" ? table : soundFiles().rbegin()->second;
    return std::optional(
        frontend::FileBytes{{bytes.data(), bytes.size()}, nullptr});
  };
  frontend::Problem problem;
  auto bundle = test::tf::Bundle::open(open, problem);
  auto keys = test::tf::readTable(table, problem);
  if (!bundle || !keys)
    return;
  int count = 0;
  for (const auto &[key, value] : *keys) {
    if (++count > maxKeys)
      return;
    bundle->load(key, &context, problem);
    bundle->loadText(key, problem);
  }
}

/// Dialects take longer to load than most inputs to refuse, so some inputs
/// share a context.
static mlir::MLIRContext &nextContext() {
  constexpr int inputsPerContext = 64;
  static std::unique_ptr<mlir::MLIRContext> context;
  static int count = 0;
  if (count++ % inputsPerContext == 0)
    context = std::make_unique<mlir::MLIRContext>(
        mlir::MLIRContext::Threading::DISABLED);
  return *context;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string bytes(reinterpret_cast<const char *>(data), size);
  mlir::MLIRContext &context = nextContext();
  std::map<std::string, std::string> files;
  if (fuzzedFile == tableFile)
    readVariables(bytes, context);
  if (fuzzedFile == tableFile || fuzzedFile == "saved_model.pb")
    files = soundFiles();
  files[fuzzedFile] = std::move(bytes);
  frontend::importTensorFlowFiles(files, "fuzz", {}, context);
  return 0;
}
