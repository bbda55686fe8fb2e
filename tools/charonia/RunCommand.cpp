#include "tools/charonia/Console.h"
#include "tools/charonia/Elements.h"
#include "tools/charonia/Execution.h"
#include "tools/charonia/OutputFiles.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace charonia::tool {
namespace {

namespace fs = std::filesystem;

std::string formatValue(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return std::isnan(value) ? "" : text;
}

/// A row for each output, of what the run has left in memory.
Status printSummary(const Context &context) {
  Table table({"output", "type", "shape", "min", "mean", "max", "NaN"});
  const std::vector<TensorSpec> &outputs = context.signature().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    CHARONIA_ASSIGN_OR_RETURN(Tensor tensor, context.output(i));
    uint64_t count = 1;
    for (int64_t extent : tensor.shape)
      count *= extent;
    Summary summary = summarize(tensor.dtype, tensor.data, count);
    table.add({printable(outputs[i].name), std::string(dtypeName(tensor.dtype)),
               shapeString(tensor.shape), formatValue(summary.min),
               formatValue(summary.mean), formatValue(summary.max),
               std::to_string(summary.nans)});
  }
  std::fputs(table.str().c_str(), stdout);
  return Status::ok();
}

/// Writes the outputs; `files` gets the name of each output's file.
Status writeOutputs(const Context &context, const std::string &folder,
                    std::vector<std::string> &files) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return Status(StatusCode::Io, folder + ": " + error.message());
  std::vector<std::string> names;
  for (const TensorSpec &spec : context.signature().outputs)
    names.push_back(spec.name);
  files = outputFileNames(names);
  for (size_t i = 0; i < names.size(); ++i) {
    CHARONIA_ASSIGN_OR_RETURN(Tensor tensor, context.output(i));
    fs::path path = fs::path(folder) / files[i];
    CHARONIA_RETURN_IF_ERROR(
        writeNpy(path.string(), tensor.dtype, tensor.shape, tensor.data));
  }
  return Status::ok();
}

Status execute(const RunCommand &command) {
  CHARONIA_ASSIGN_OR_RETURN(Execution execution, Execution::open(command));
  CHARONIA_RETURN_IF_ERROR(execution.bindFiles(command.inputs));
  // Some inputs but not all is more likely a slip than a wish, unless --shape
  // speaks of the others.
  if (command.inputs.empty() || !command.shapes.empty()) {
    CHARONIA_RETURN_IF_ERROR(
        execution.bindRandom(command.shapes, command.seed));
    if (std::string random = execution.describeRandom(); !random.empty())
      note("random inputs (seed " + std::to_string(command.seed) +
           "): " + random);
  }
  Context &context = execution.getContext();
  CHARONIA_RETURN_IF_ERROR(context.run());
  if (command.outputDir.empty())
    return printSummary(context);
  std::vector<std::string> files;
  CHARONIA_RETURN_IF_ERROR(writeOutputs(context, command.outputDir, files));
  for (size_t i = 0; i < files.size(); ++i)
    std::printf("%s: %s\n",
                printable(context.signature().outputs[i].name).c_str(),
                (fs::path(command.outputDir) / files[i]).c_str());
  return Status::ok();
}

/// Binds what an entry of --batch says of its inputs.
Status bindEntry(Execution &execution, const nlohmann::json &entry) {
  if (!entry.contains("inputs"))
    return Status::ok();
  if (!entry["inputs"].is_object())
    return Status(StatusCode::InvalidArgument,
                  "\"inputs\" is to be an object of names and files");
  const Signature &signature = execution.getEngine().signature();
  for (const auto &[name, path] : entry["inputs"].items()) {
    if (!path.is_string())
      return Status(StatusCode::InvalidArgument,
                    "input '" + name + "': the name of a file is wanted");
    auto found = std::find_if(
        signature.inputs.begin(), signature.inputs.end(),
        [&](const TensorSpec &spec) { return jsonName(spec.name) == name; });
    size_t index = found - signature.inputs.begin();
    if (found == signature.inputs.end()) {
      CHARONIA_ASSIGN_OR_RETURN(index, signature.findInput(name));
    }
    CHARONIA_RETURN_IF_ERROR(
        execution.bindFile(index, path.get<std::string>()));
  }
  return Status::ok();
}

/// An entry of --batch; `line` is what it says.
Status executeEntry(const RunCommand &options, const nlohmann::json &entry,
                    nlohmann::json &line) {
  auto text = [&](const char *key) {
    return entry.is_object() && entry.contains(key) && entry[key].is_string()
               ? entry[key].get<std::string>()
               : std::string();
  };
  RunCommand one = options;
  one.engine = text("engine");
  one.outputDir = text("output_dir");
  line["engine"] = one.engine;
  if (one.engine.empty())
    return Status(StatusCode::InvalidArgument,
                  "an entry wants \"engine\", \"inputs\" and \"output_dir\"");
  CHARONIA_ASSIGN_OR_RETURN(Execution execution, Execution::open(one));
  CHARONIA_RETURN_IF_ERROR(bindEntry(execution, entry));
  Context &context = execution.getContext();
  CHARONIA_RETURN_IF_ERROR(context.run());
  line["device"] = deviceString(context.device());
  if (one.outputDir.empty())
    return Status::ok();
  std::vector<std::string> files;
  CHARONIA_RETURN_IF_ERROR(writeOutputs(context, one.outputDir, files));
  for (size_t i = 0; i < files.size(); ++i)
    line["outputs"][jsonName(context.signature().outputs[i].name)] = files[i];
  return Status::ok();
}

/// Every entry is run; a line of JSON tells how each went.
int executeBatch(const RunCommand &command) {
  std::ifstream file(command.batch);
  if (!file)
    return fail(command.batch + ": cannot be opened");
  auto list = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array())
    return fail(command.batch + ": is not a JSON list");
  int status = Done;
  for (const auto &entry : list) {
    nlohmann::json line;
    Status result = executeEntry(command, entry, line);
    line["ok"] = result.isOk();
    if (!result) {
      line["error"] = result.message();
      status = Failed;
    }
    std::puts(jsonText(line).c_str());
    std::fflush(stdout);
  }
  return status;
}

} // namespace

int run(const RunCommand &command) {
  if (!command.batch.empty())
    return executeBatch(command);
  Status status = execute(command);
  return status ? Done : fail(status);
}

} // namespace charonia::tool
