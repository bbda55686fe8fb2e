#include "tools/charonia/Console.h"
#include "tools/charonia/Execution.h"
#include "tools/charonia/Measure.h"
#include "tools/charonia/Roofline.h"

#include <nlohmann/json.hpp>

namespace charonia::tool {
namespace {

using nlohmann::json;

/// As much as fits into `width` characters.
std::string shortened(const std::string &text, size_t width) {
  if (text.size() <= width)
    return text;
  size_t end = width - 3;
  while (end && (text[end] & 0xc0) == 0x80)
    --end;
  return text.substr(0, end) + "...";
}

class Bench {
public:
  explicit Bench(const BenchCommand &command) : command(command) {}

  Status run() {
    CHARONIA_ASSIGN_OR_RETURN(Execution execution, Execution::open(command));
    CHARONIA_RETURN_IF_ERROR(execution.bindFiles(command.inputs));
    CHARONIA_RETURN_IF_ERROR(
        execution.bindRandom(command.shapes, command.seed));
    Context &context = execution.getContext();
    const Signature &signature = context.signature();
    std::string precision = execution.precision(command);
    report["engine"] = command.engine;
    report["device"] = deviceString(context.device());
    report["description"] = context.description();
    report["precision"] = precision;
    std::printf("%s, %s, %s\n", command.engine.c_str(),
                context.description().c_str(), precision.c_str());
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      const auto &shape = execution.getInputs()[i].shape;
      report["inputs"][jsonName(signature.inputs[i].name)] = shape;
      std::printf("  %s: %s %s\n", printable(signature.inputs[i].name).c_str(),
                  std::string(dtypeName(signature.inputs[i].dtype)).c_str(),
                  shapeString(shape).c_str());
    }

    CHARONIA_RETURN_IF_ERROR(measure(context, command.warmUp).status());
    CHARONIA_ASSIGN_OR_RETURN(
        Latency latency,
        measure(context, command.duration, command.iterations));
    report["latency_ms"] = latency.json();
    report["throughput"] = 1 / latency.mean;
    std::printf("latency in ms: min %.4f, mean %.4f, p50 %.4f, p90 %.4f, p99 "
                "%.4f (%zu runs); "
                "%.1f runs/s\n",
                latency.min * 1e3, latency.mean * 1e3, latency.p50 * 1e3,
                latency.p90 * 1e3, latency.p99 * 1e3, latency.count,
                1 / latency.mean);
    CHARONIA_ASSIGN_OR_RETURN(MemoryInfo memory, context.memory());
    report["memory"] = {{"arena_bytes", memory.arenaBytes},
                        {"arena_lower_bound", memory.arenaLowerBound},
                        {"weight_bytes", memory.weightBytes}};
    std::printf("memory: arena %s (at least %s), weights %s\n",
                formatBytes(memory.arenaBytes).c_str(),
                formatBytes(memory.arenaLowerBound).c_str(),
                formatBytes(memory.weightBytes).c_str());
    if (!command.noProfile)
      CHARONIA_RETURN_IF_ERROR(
          profile(context, precision, execution.threads()));
    return Status::ok();
  }

  Status write() const { return writeReport(report, command.json); }

private:
  Status profile(Context &context, const std::string &precision,
                 unsigned threads) {
    CHARONIA_ASSIGN_OR_RETURN(std::vector<StepProfile> steps,
                              context.profile(10));
    Ceilings ceilings = findCeilings(context, precision, threads);
    double total = 0;
    for (const StepProfile &step : steps)
      total += step.seconds;
    Table table({"step", "us", "share", "GB/s", "GFLOP/s", "bound", "reached",
                 "grid", "kernel", "operators"});
    for (size_t i = 0; i < steps.size(); ++i) {
      const StepProfile &step = steps[i];
      double seconds = std::max(step.seconds, 1e-9);
      Bound bound = findBound(ceilings, step.flops, step.bytes, seconds);
      std::string ops;
      for (const std::string &op : step.ops)
        ops += (ops.empty() ? "" : "; ") + op;
      table.add({std::to_string(i), formatNumber(seconds * 1e6, 2),
                 formatNumber(100 * seconds / total, 1) + "%",
                 formatNumber(step.bytes / seconds * 1e-9, 1),
                 formatNumber(step.flops / seconds * 1e-9, 1), bound.name,
                 bound.share ? formatNumber(100 * bound.share, 0) + "%" : "",
                 std::to_string(step.grid), printable(step.name),
                 shortened(printable(ops), 90)});
      report["kernels"].push_back(
          {{"step", i},
           {"name", step.name},
           {"ops", step.ops},
           {"nodes", step.nodes},
           {"ms", seconds * 1e3},
           {"mean_ms", step.meanSeconds * 1e3},
           {"share", seconds / total},
           {"flops", step.flops},
           {"bytes", step.bytes},
           {"gb_per_s", step.bytes / seconds * 1e-9},
           {"tflop_per_s", step.flops / seconds * 1e-12},
           {"bound", bound.name},
           {"roofline", bound.share ? json(bound.share) : json()},
           {"grid", step.grid},
           {"block_threads", step.blockThreads},
           {"registers", step.registers},
           {"shared_bytes", step.sharedBytes}});
    }
    std::printf("\n%s", table.str().c_str());
    report["ceilings"] = {{"flops", ceilings.flops},
                          {"bandwidth", ceilings.bandwidth},
                          {"source", ceilings.source}};
    if (ceilings.flops)
      std::printf("\nceilings: %.2f TFLOP/s, %.1f GB/s (%s); %zu steps take "
                  "%.4f ms one by one\n",
                  ceilings.flops * 1e-12, ceilings.bandwidth * 1e-9,
                  ceilings.source.c_str(), steps.size(), total * 1e3);
    return Status::ok();
  }

  const BenchCommand &command;
  json report;
};

} // namespace

int run(const BenchCommand &command) {
  Bench bench(command);
  if (Status status = bench.run(); !status)
    return fail(status);
  Status written = bench.write();
  return written ? Done : fail(written);
}

} // namespace charonia::tool
