#include "tools/charonia/Console.h"
#include "tools/charonia/Elements.h"
#include "tools/charonia/Execution.h"
#include "tools/charonia/Measure.h"
#include "tools/charonia/Peer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace charonia::tool {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A folder that goes when it is no longer needed.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern =
        (fs::temp_directory_path() / "charonia-compare-XXXXXX").string();
    if (mkdtemp(pattern.data()))
      path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path.empty())
      fs::remove_all(path, error);
  }
  fs::path path;
};

struct Difference {
  double largest = 0; ///< Absolute.
  double mean = 0;    ///< Absolute.
  double scale = 0;   ///< Largest value of the reference.
  bool finite = true; ///< Or not finite at the same elements.
};

Difference compareTensors(const Tensor &ours, const Array &theirs) {
  Difference difference;
  uint64_t count = 1;
  for (int64_t extent : theirs.shape)
    count *= extent;
  for (uint64_t i = 0; i < count; ++i) {
    double a = elementAsDouble(ours.dtype, ours.data, i);
    double b = elementAsDouble(theirs.dtype, theirs.data.get(), i);
    if (std::isfinite(b))
      difference.scale = std::max(difference.scale, std::abs(b));
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double error = std::abs(a - b);
    difference.finite &= std::isfinite(error);
    difference.largest = std::max(difference.largest, error);
    difference.mean += error / count;
  }
  return difference;
}

class Comparison {
public:
  explicit Comparison(const CompareCommand &command) : command(command) {}

  Status run() {
    if (folder.path.empty())
      return Status(StatusCode::Io, "no folder for temporary files");
    std::error_code ignored;
    // TensorFlow's models are folders.
    bool isFolder = fs::is_directory(command.model, ignored);
    if (isFolder && command.with != "tensorflow")
      return Status(StatusCode::InvalidArgument,
                    command.model + ": is a folder, as TensorFlow's models "
                                    "are: use --with tensorflow");
    if (!isFolder && !fs::is_regular_file(command.model, ignored))
      return Status(StatusCode::NotFound,
                    command.model + (fs::exists(command.model, ignored)
                                         ? ": is not a regular file"
                                         : ": no such file"));
    CHARONIA_ASSIGN_OR_RETURN(Execution execution, Execution::open(command));
    CHARONIA_RETURN_IF_ERROR(execution.bindFiles(command.inputs));
    CHARONIA_RETURN_IF_ERROR(
        execution.bindRandom(command.shapes, command.seed));
    CHARONIA_RETURN_IF_ERROR(startPeer(execution));
    CHARONIA_RETURN_IF_ERROR(command.with == "cublas"
                                 ? compareProducts(execution)
                                 : compareModel(execution));
    return writeReport(report, command.json);
  }

private:
  Status startPeer(Execution &execution) {
    const Signature &signature = execution.getEngine().signature();
    Context &context = execution.getContext();
    std::string precision = execution.precision(command);
    bool gpu = context.device().kind == DeviceKind::Cuda;
    // ONNX Runtime is the reference on the CPU wherever the engine runs.
    bool peerOnGpu = gpu && command.with != "onnxruntime";
    std::vector<std::string> arguments{command.model,
                                       "--with",
                                       command.with,
                                       "--output-dir",
                                       folder.path.string(),
                                       "--device",
                                       peerOnGpu ? "cuda" : "cpu"};
    if (peerOnGpu)
      arguments.insert(arguments.end(), {"--precision", precision});
    // As many as the engine has, where both are on the CPU.
    if (unsigned threads = gpu ? command.threads : execution.threads())
      arguments.insert(arguments.end(), {"--threads", std::to_string(threads)});
    if (!command.name.empty())
      arguments.insert(arguments.end(), {"--name", command.name});
    if (!command.program.empty())
      arguments.insert(arguments.end(), {"--program", command.program});
    if (command.peerMode != "eager")
      arguments.insert(arguments.end(), {"--peer-mode", command.peerMode});
    arguments.push_back("--serve");
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      const Array &array = execution.getInputs()[i];
      std::string path =
          (folder.path / ("input" + std::to_string(i) + ".npy")).string();
      CHARONIA_RETURN_IF_ERROR(
          writeNpy(path, array.dtype, array.shape, array.data.get()));
      arguments.insert(arguments.end(),
                       {"--input", signature.inputs[i].name + "=" + path});
      report["inputs"][jsonName(signature.inputs[i].name)] = array.shape;
    }
    report["engine"] = command.engine;
    report["model"] = command.model;
    report["device"] = context.description();
    report["precision"] = precision;
    devicesDiffer = gpu != peerOnGpu;
    return peer.start(command.python, arguments);
  }

  Status compareModel(Execution &execution) {
    CHARONIA_ASSIGN_OR_RETURN(json first, peer.read());
    Context &context = execution.getContext();
    CHARONIA_RETURN_IF_ERROR(context.run());
    Table accuracy({"output", "shape", "scale", "largest error", "of scale",
                    "mean error"});
    for (const TensorSpec &spec : context.signature().outputs)
      CHARONIA_RETURN_IF_ERROR(
          compareOutput(context, spec, first["outputs"], accuracy));
    std::printf("%s\n", accuracy.str().c_str());
    return compareLatency(context, first.value("peer", command.with));
  }

  /// Adds a row to the table; `theirNames` are the peer's outputs.
  Status compareOutput(const Context &context, const TensorSpec &spec,
                       const std::vector<std::string> &theirNames,
                       Table &accuracy) {
    auto found = std::find(theirNames.begin(), theirNames.end(), spec.name);
    if (found == theirNames.end())
      return mismatch("the engine gives '" + spec.name +
                      "', but the model has no such output");
    std::string file = std::to_string(found - theirNames.begin()) + ".npy";
    CHARONIA_ASSIGN_OR_RETURN(Tensor ours, context.output(spec.name));
    CHARONIA_ASSIGN_OR_RETURN(
        Array theirs, readNpy((folder.path / file).string(), spec.dtype));
    if (ours.shape != theirs.shape)
      return mismatch("output '" + spec.name + "' is " +
                      shapeString(ours.shape) + " from the engine and " +
                      shapeString(theirs.shape) + " from the model");
    Difference d = compareTensors(ours, theirs);
    double relative = d.scale ? d.largest / d.scale : d.largest;
    char numbers[3][32];
    std::snprintf(numbers[0], 32, "%.4g", d.scale);
    std::snprintf(numbers[1], 32, "%.3e", d.largest);
    std::snprintf(numbers[2], 32, "%.3e", d.mean);
    char share[32];
    std::snprintf(share, 32, "%.2e", relative);
    accuracy.add({printable(spec.name), shapeString(ours.shape), numbers[0],
                  d.finite ? numbers[1] : "not finite", share, numbers[2]});
    report["outputs"].push_back({{"name", jsonName(spec.name)},
                                 {"shape", ours.shape},
                                 {"scale", d.scale},
                                 {"max_error", d.largest},
                                 {"relative_error", relative},
                                 {"mean_error", d.mean},
                                 {"finite", d.finite}});
    return Status::ok();
  }

  /// Rounds alternate, so that a machine that slows down slows both.
  Status compareLatency(Context &context, const std::string &title) {
    std::vector<double> ours, theirs;
    Latency last;
    json lastPeer;
    for (unsigned round = 0; round < command.rounds; ++round) {
      CHARONIA_RETURN_IF_ERROR(measure(context, command.duration / 5).status());
      CHARONIA_ASSIGN_OR_RETURN(last, measure(context, command.duration));
      ours.push_back(last.p50 * 1e3);
      CHARONIA_RETURN_IF_ERROR(
          peer.write("time " + std::to_string(command.duration)));
      CHARONIA_ASSIGN_OR_RETURN(json answer, peer.read());
      lastPeer = answer["latency_ms"];
      if (!lastPeer.is_object() || !lastPeer["p50"].is_number())
        return Status(StatusCode::Internal,
                      "the peer answered: " + jsonText(answer));
      theirs.push_back(lastPeer["p50"]);
      report["rounds"].push_back(
          {{"charonia_ms", ours.back()}, {"peer_ms", theirs.back()}});
    }
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    double a = ours[ours.size() / 2], b = theirs[theirs.size() / 2];
    Table latency({"", "ms (median of rounds)", "best round"});
    latency.add({"charonia on " + context.description(), formatNumber(a, 4),
                 formatNumber(ours.front(), 4)});
    latency.add({title, formatNumber(b, 4), formatNumber(theirs.front(), 4)});
    std::printf("%scharonia is %.2fx as fast as %s%s\n", latency.str().c_str(),
                b / a, title.c_str(),
                devicesDiffer ? "; charonia ran on a GPU, the peer on a CPU"
                              : "");
    report["peer"] = title;
    report["charonia_ms"] = a;
    report["peer_ms"] = b;
    report["speed"] = b / a;
    report["devices_differ"] = devicesDiffer;
    return Status::ok();
  }

  Status mismatch(const std::string &what) const {
    return Status(StatusCode::InvalidArgument, command.engine +
                                                   " was not compiled from " +
                                                   command.model + ": " + what);
  }

  /// Each matrix product of the model beside the kernel that computes its node.
  Status compareProducts(Execution &execution) {
    CHARONIA_ASSIGN_OR_RETURN(json answer, peer.read());
    Context &context = execution.getContext();
    CHARONIA_RETURN_IF_ERROR(context.run());
    CHARONIA_ASSIGN_OR_RETURN(std::vector<StepProfile> steps,
                              context.profile(20));
    Table table({"node", "batch x m x n x k", "cuBLAS us", "charonia us",
                 "speed", "kernel"});
    for (json &product : answer["gemms"]) {
      std::string node = product.value("node", "");
      double theirs = product.value("ms", 0.0);
      const StepProfile *found = nullptr;
      for (const StepProfile &step : steps)
        if (std::find(step.nodes.begin(), step.nodes.end(), node) !=
            step.nodes.end())
          found = &step;
      std::string shape = std::to_string(product.value("batch", 1)) + "x" +
                          std::to_string(product.value("m", 0)) + "x" +
                          std::to_string(product.value("n", 0)) + "x" +
                          std::to_string(product.value("k", 0));
      double ours = found ? found->seconds * 1e3 : 0;
      table.add({node, shape, formatNumber(theirs * 1e3, 2),
                 found ? formatNumber(ours * 1e3, 2) : "",
                 found ? formatNumber(theirs / ours, 2) + "x" : "",
                 found ? found->name : ""});
      product["charonia_ms"] = ours;
    }
    report["gemms"] = answer["gemms"];
    std::printf(
        "%s\nA kernel's time holds whatever is fused with the product.\n",
        table.str().c_str());
    return Status::ok();
  }

  const CompareCommand &command;
  TemporaryFolder folder;
  Peer peer;
  bool devicesDiffer = false;
  json report;
};

} // namespace

int run(const CompareCommand &command) {
  Status status = Comparison(command).run();
  return status ? Done : fail(status);
}

} // namespace charonia::tool
