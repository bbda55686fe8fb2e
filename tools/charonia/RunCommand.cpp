#include "tools/charonia/Console.h"
#include "tools/charonia/Execution.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace charonia::tool {
namespace {

namespace fs = std::filesystem;

/// Where an output goes: its name, with what no file name has replaced.
std::string fileName(const std::string &output) {
  std::string name = output;
  for (char &c : name)
    if (c == '/' || c == '\0')
      c = '_';
  if (name == "." || name == "..")
    name = "_" + name;
  return name + ".npy";
}

Status execute(const RunCommand &command) {
  CHARONIA_ASSIGN_OR_RETURN(Execution execution, Execution::open(command));
  CHARONIA_RETURN_IF_ERROR(execution.bindFiles(command.inputs));
  Context &context = execution.getContext();
  CHARONIA_RETURN_IF_ERROR(context.run());
  if (command.outputDir.empty())
    return Status::ok();
  std::error_code error;
  fs::create_directories(command.outputDir, error);
  if (error)
    return Status(StatusCode::Io, command.outputDir + ": " + error.message());
  const Signature &signature = context.signature();
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    CHARONIA_ASSIGN_OR_RETURN(Tensor tensor, context.output(i));
    fs::path path =
        fs::path(command.outputDir) / fileName(signature.outputs[i].name);
    CHARONIA_RETURN_IF_ERROR(
        writeNpy(path.string(), tensor.dtype, tensor.shape, tensor.data));
  }
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
  int status = 0;
  for (const auto &entry : list) {
    RunCommand one = command;
    one.inputs.clear();
    Status result(StatusCode::InvalidArgument,
                  "an entry wants \"engine\", \"inputs\" and \"output_dir\"");
    if (entry.is_object() && entry.contains("engine") &&
        entry["engine"].is_string()) {
      one.engine = entry["engine"];
      if (entry.contains("output_dir") && entry["output_dir"].is_string())
        one.outputDir = entry["output_dir"];
      if (entry.contains("inputs") && entry["inputs"].is_object())
        for (const auto &[name, path] : entry["inputs"].items())
          if (path.is_string())
            one.inputs.push_back(name + "=" + path.get<std::string>());
      result = execute(one);
    }
    nlohmann::json line = {{"engine", one.engine}, {"ok", result.isOk()}};
    if (!result) {
      line["error"] = result.message();
      status = 1;
    }
    std::puts(line.dump().c_str());
    std::fflush(stdout);
  }
  return status;
}

} // namespace

int run(const RunCommand &command) {
  if (!command.batch.empty())
    return executeBatch(command);
  if (command.engine.empty())
    return fail("no engine to run");
  Status status = execute(command);
  return status ? 0 : fail(status);
}

} // namespace charonia::tool
