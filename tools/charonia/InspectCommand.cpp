#include "runtime/engine/Reader.h"
#include "runtime/plan/ProgramArena.h"
#include "tools/charonia/Console.h"
#include "tools/charonia/Execution.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace charonia::tool {
namespace {

using nlohmann::json;

const char *kindName(engine::Buffer::Kind kind) {
  switch (kind) {
  case engine::Buffer::Kind::Input:
    return "input";
  case engine::Buffer::Kind::Output:
    return "output";
  case engine::Buffer::Kind::Weight:
    return "weight";
  case engine::Buffer::Kind::Arena:
    return "arena";
  }
  return "";
}

std::string joined(const std::vector<std::string> &parts,
                   const char *separator) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : separator) + part;
  return text;
}

/// "matmul float32[batch, 192]": the operator, and what it gives.
std::string operatorOf(const std::string &op) {
  return op.substr(0, op.find(' '));
}
std::string resultOf(const std::string &op) {
  size_t space = op.find(' ');
  return space == std::string::npos ? "" : op.substr(space + 1);
}

/// "matmul, add x2, gelu": repetitions are counted.
std::string operatorNames(const std::vector<std::string> &ops) {
  std::string text;
  for (size_t i = 0, end; i < ops.size(); i = end) {
    std::string name = operatorOf(ops[i]);
    for (end = i + 1; end < ops.size() && operatorOf(ops[end]) == name; ++end)
      ;
    text += (i ? ", " : "") + name;
    if (end - i > 1)
      text += " x" + std::to_string(end - i);
  }
  return text;
}

class Inspector {
public:
  Inspector(const InspectCommand &command,
            std::shared_ptr<const engine::Reader> reader)
      : command(command), reader(std::move(reader)),
        manifest(this->reader->manifest()),
        symbols(manifest.signature.symbols) {}

  Status run() {
    if (command.verify)
      CHARONIA_RETURN_IF_ERROR(reader->verifyAll());
    CHARONIA_RETURN_IF_ERROR(chooseShapes());
    if (command.json) {
      CHARONIA_ASSIGN_OR_RETURN(json everything, describe());
      std::printf("%s\n", jsonText(everything, 1).c_str());
      return Status::ok();
    }
    printSignature();
    for (const engine::Program &program : manifest.programs) {
      CHARONIA_RETURN_IF_ERROR(printProgram(program));
      if (command.kernels)
        CHARONIA_RETURN_IF_ERROR(printKernels(program));
      if (command.fusion)
        printFusion(program);
      if (command.memory)
        CHARONIA_RETURN_IF_ERROR(printMemory(program));
    }
    printBuild();
    return Status::ok();
  }

private:
  /// The symbols' values that sizes are shown for.
  Status chooseShapes() {
    for (const Symbol &symbol : symbols)
      values.push_back(symbol.opt);
    if (command.shapes.empty())
      return Status::ok();
    CHARONIA_ASSIGN_OR_RETURN(
        auto shapes,
        tool::chooseShapes(manifest.signature, command.shapes,
                           std::vector<std::optional<std::vector<int64_t>>>(
                               manifest.signature.inputs.size())));
    CHARONIA_ASSIGN_OR_RETURN(values, manifest.signature.solveSymbols(shapes));
    return Status::ok();
  }

  Result<plan::ProgramArena> planProgram(const engine::Program &program) const {
    return plan::planProgram(program, values, symbols);
  }

  uint64_t weightBytes(const engine::Program &program) const {
    return program.weightsSection == engine::noIndex
               ? 0
               : reader->sections()[program.weightsSection].size;
  }

  std::string archs(const engine::Program &program) const {
    std::vector<std::string> names;
    for (const engine::Variant &variant : program.variants)
      names.push_back(variant.arch);
    return printable(joined(names, ", "));
  }

  size_t launches(const engine::Program &program) const {
    size_t count = 0;
    for (const engine::Step &step : program.steps)
      count += step.kind == engine::Step::Kind::Launch;
    return count;
  }

  /// Launches that may run beside the one before them.
  size_t besides(const engine::Program &program) const {
    return std::ranges::count_if(program.steps, [](const engine::Step &step) {
      return step.besidePrevious;
    });
  }
  std::string besideText(const engine::Program &program) const {
    size_t count = besides(program);
    return count ? " (" + std::to_string(count) + " beside the one before them)"
                 : "";
  }

  /// Whether it says what a symbol is that counts steps, where nothing does.
  bool isOfCounter(const Constraint &c) const {
    auto left = c.left.terms();
    return left.size() == 1 && left[0].op == ShapeExpr::Op::Symbol &&
           std::ranges::any_of(manifest.programs, [&](const auto &program) {
             return std::ranges::any_of(
                 program.repeats, [&](const engine::Repeat &repeat) {
                   return int64_t(repeat.symbol) == left[0].value;
                 });
           });
  }

  /// Whether it says what a size is that no input has.
  static bool computesSize(const Signature &signature, const Constraint &c) {
    auto left = c.left.terms();
    if (c.relation != Constraint::Relation::Equal || left.size() != 1 ||
        left[0].op != ShapeExpr::Op::Symbol)
      return false;
    for (const TensorSpec &spec : signature.inputs)
      for (const ShapeExpr &dim : spec.dims)
        if (std::ranges::find(dim.terms(), left[0]) != dim.terms().end())
          return false;
    return true;
  }

  void printSignature() const {
    std::printf("%s: %s\n", reader->name().c_str(),
                formatBytes(reader->fileSize()).c_str());
    if (!command.digest.empty())
      std::printf("  sha256 %s\n", reader->digest().c_str());
    for (const auto *specs :
         {&manifest.signature.inputs, &manifest.signature.outputs})
      for (const TensorSpec &spec : *specs) {
        std::string range = manifest.signature.rangeString(spec);
        std::printf("  %s %s: %s%s\n",
                    specs == &manifest.signature.inputs ? "input" : "output",
                    printable(spec.name).c_str(),
                    printable(manifest.signature.typeString(spec)).c_str(),
                    range.empty() ? "" : printable(", " + range).c_str());
      }
    const Signature &signature = manifest.signature;
    std::vector<std::string> texts = signature.constraintStrings();
    for (size_t i = 0; i < texts.size(); ++i)
      if (const Constraint &c = signature.constraints[i]; !isOfCounter(c))
        std::printf("  %s %s\n",
                    computesSize(signature, c) ? "computes" : "needs",
                    printable(texts[i]).c_str());
  }

  Status printProgram(const engine::Program &program) const {
    CHARONIA_ASSIGN_OR_RETURN(plan::ProgramArena arena, planProgram(program));
    std::printf("\n%s, %s (%s): %zu kernel launches%s of %zu kernels, weights "
                "%s, arena %s (at least %s, ratio %.3f)%s\n",
                std::string(deviceKindName(program.device)).c_str(),
                printable(program.precision).c_str(), archs(program).c_str(),
                launches(program), besideText(program).c_str(),
                program.kernels.size(),
                formatBytes(weightBytes(program)).c_str(),
                formatBytes(arena.packed.peak).c_str(),
                formatBytes(arena.packed.lowerBound).c_str(),
                arena.packed.lowerBound
                    ? double(arena.packed.peak) / arena.packed.lowerBound
                    : 1.0,
                symbolText().c_str());
    for (const engine::Repeat &repeat : program.repeats)
      std::printf("  steps %u to %lld run %s times, counted by %s\n",
                  repeat.first, (long long)repeat.last - 1,
                  printable(text(repeat.count)).c_str(),
                  printable(symbols[repeat.symbol].name).c_str());
    return Status::ok();
  }

  std::string symbolText() const {
    std::string text;
    for (size_t i = 0; i < symbols.size(); ++i)
      text += (i ? ", " : " at ") + printable(symbols[i].name) + " = " +
              std::to_string(values[i]);
    return text;
  }

  /// What is told of a kernel at all its launches.
  struct Launches {
    unsigned count = 0, beside = 0; ///< Of these beside the one before.
    int64_t instances = 0;          ///< Of the largest one.
    /// The signature's symbols that the first one gives it, by number.
    std::span<const uint32_t> symbols;
  };

  std::vector<Launches> launchesOf(const engine::Program &program) const {
    std::vector<Launches> result(program.kernels.size());
    for (const engine::Step &step : program.steps) {
      if (step.kind != engine::Step::Kind::Launch)
        continue;
      Launches &of = result[step.kernel];
      if (++of.count == 1)
        of.symbols = step.symbols;
      of.beside += step.besidePrevious;
    }
    return result;
  }

  /// The program instances of each kernel's largest launch.
  Status countInstances(const engine::Program &program,
                        const engine::Variant &variant,
                        std::vector<Launches> &launches) const {
    for (const engine::Step &step : program.steps) {
      if (step.kind != engine::Step::Kind::Launch)
        continue;
      std::vector<int64_t> sizes;
      for (uint32_t symbol : step.symbols)
        sizes.push_back(values[symbol]);
      CHARONIA_ASSIGN_OR_RETURN(
          int64_t grid, variant.kernels[step.kernel].grid.evaluate(sizes));
      int64_t &most = launches[step.kernel].instances;
      most = std::max(most, grid);
    }
    return Status::ok();
  }

  Status printKernels(const engine::Program &program) const {
    std::vector<Launches> launches = launchesOf(program);
    // What a kernel takes of the machine, in the code for the best one.
    const engine::Variant &variant = *std::max_element(
        program.variants.begin(), program.variants.end(),
        [](const engine::Variant &a, const engine::Variant &b) {
          return std::pair(a.arch.size(), a.arch) <
                 std::pair(b.arch.size(), b.arch);
        });
    CHARONIA_RETURN_IF_ERROR(countInstances(program, variant, launches));
    bool gpu = program.device == DeviceKind::Cuda;
    std::vector<std::string> header{"launches", "instances"};
    for (const char *column :
         {"beside", "threads", "registers", "spilled", "shared"})
      if (gpu)
        header.push_back(column);
    if (!gpu)
      header.push_back("scratch");
    header.insert(header.end(), {"operations", "needed", "bytes", "needed",
                                 "kernel", "result", "operators"});
    Table table(header);
    for (size_t i = 0; i < program.kernels.size(); ++i) {
      const engine::KernelCode &code = variant.kernels[i];
      std::vector<std::string> row{std::to_string(launches[i].count),
                                   std::to_string(launches[i].instances)};
      if (gpu)
        for (uint64_t number :
             {uint64_t(launches[i].beside), uint64_t(code.blockThreads),
              uint64_t(code.registers), uint64_t(code.spillBytes),
              uint64_t(code.sharedBytes)})
          row.push_back(std::to_string(number));
      else
        row.push_back(std::to_string(code.scratchBytes));
      for (uint64_t count : {code.operations, code.neededOperations,
                             code.accessedBytes, code.neededBytes})
        row.push_back(formatCount(double(count)));
      const std::vector<std::string> &ops = program.kernels[i].ops;
      row.insert(row.end(), {printable(program.kernels[i].name),
                             ops.empty() ? "" : printable(resultOf(ops.back())),
                             printable(operatorNames(ops))});
      table.add(row);
    }
    std::printf("in the code for %s (scratch and shared memory in bytes):\n",
                printable(variant.arch).c_str());
    std::printf("%s", table.str().c_str());
    std::printf("instances: of the largest launch; %s"
                "operations on elements and bytes loaded and stored: of a "
                "launch, at the sizes to optimize for; needed: of its "
                "operators, if each does its work once\n",
                gpu ? "beside: launches that may run beside the one before "
                      "them; "
                    : "");
    printTuning(program);
    return Status::ok();
  }

  /// What the compiler noted of values that one kernel computes and another, or
  /// the same, reads; what saves most, or would, first.
  void printFusion(const engine::Program &program) const {
    // A program of one variant has its name, unless it could have had more.
    std::string device(deviceKindName(program.device)),
        own = program.variants.front().arch + "-" + device;
    bool gpu = program.device == DeviceKind::Cuda;
    std::vector<std::vector<std::string>> lines;
    for (const auto &[key, value] : manifest.build.notes) {
      std::vector<std::string> fields = split(value, '\t');
      if ((key.starts_with(own + ".fusion.") ||
           key.starts_with(device + ".fusion.")) &&
          fields.size() == 6)
        lines.push_back(std::move(fields));
    }
    std::ranges::stable_sort(lines, std::greater(), [](const auto &fields) {
      return std::strtod(fields[3].c_str(), nullptr);
    });
    for (bool apart : {false, true}) {
      std::vector<std::string> header{"values", "bytes"};
      if (gpu)
        header.push_back("us");
      header.push_back("kernel");
      if (apart)
        header.insert(header.end(), {"reader", "apart, since"});
      Table table(header);
      for (const auto &fields : lines) {
        if (fields[1].empty() == apart)
          continue;
        std::vector<std::string> row{
            printable(fields[2]),
            formatBytes(std::strtod(fields[3].c_str(), nullptr))};
        if (gpu)
          row.push_back(printable(fields[5]));
        row.push_back(printable(fields[0]));
        if (apart)
          row.insert(row.end(), {printable(fields[1]), printable(fields[4])});
        table.add(row);
      }
      std::printf("%s\n%s",
                  apart ? "one kernel for both would save, with its "
                          "reader:"
                        : "read in the kernel that computes them, "
                          "which saves:",
                  table.str().c_str());
    }
  }

  static std::vector<std::string> split(const std::string &text, char at) {
    std::vector<std::string> fields(1);
    for (char c : text)
      if (c == at)
        fields.emplace_back();
      else
        fields.back() += c;
    return fields;
  }

  /// What the compiler noted of kernels whose schedules were measured.
  void printTuning(const engine::Program &program) const {
    std::map<std::string, std::string> notes(manifest.build.notes.begin(),
                                             manifest.build.notes.end());
    for (const engine::Variant &variant : program.variants)
      for (size_t i = 0; i < program.kernels.size(); ++i)
        if (auto it = notes.find(variant.arch + ".tuned." + std::to_string(i));
            it != notes.end())
          std::printf("tuned for %s: %s, %s\n", printable(variant.arch).c_str(),
                      printable(program.kernels[i].name).c_str(),
                      printable(it->second).c_str());
  }

  Status printMemory(const engine::Program &program) const {
    CHARONIA_ASSIGN_OR_RETURN(plan::ProgramArena arena, planProgram(program));
    Table table({"buffer", "kind", "bytes", "size", "from", "to", "offset",
                 "in", "value"});
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const engine::Buffer &buffer = program.buffers[i];
      CHARONIA_ASSIGN_OR_RETURN(int64_t size, buffer.size.evaluate(values));
      bool inArena = arena.contains(i);
      table.add(
          {std::to_string(i), kindName(buffer.kind), std::to_string(size),
           printable(buffer.size.str(symbols)),
           std::to_string(buffer.firstStep), std::to_string(buffer.lastStep),
           inArena ? std::to_string(arena.offsetOf(i))
           : buffer.kind == engine::Buffer::Kind::Weight
               ? std::to_string(buffer.weightOffset)
               : "",
           buffer.alias == engine::noIndex ? "" : std::to_string(buffer.alias),
           printable(buffer.name)});
    }
    std::printf("%s", table.str().c_str());
    return Status::ok();
  }

  void printBuild() const {
    std::printf("\nbuilt by %s from %s (%s)\n",
                printable(manifest.build.compiler).c_str(),
                printable(manifest.build.modelName).c_str(),
                printable(manifest.build.sourceHash).c_str());
    for (const auto &[key, value] : manifest.build.options)
      std::printf("  %s = %s\n", printable(key).c_str(),
                  printable(value).c_str());
  }

  /// An expression, and names, as JSON has them.
  std::string text(const ShapeExpr &expr) const {
    return jsonName(expr.str(symbols));
  }
  /// An expression of a kernel, with the names of its first launch.
  std::string text(const ShapeExpr &expr, const Launches &launches) const {
    std::vector<Symbol> named;
    for (uint32_t symbol : launches.symbols)
      named.push_back(symbols[symbol]);
    return jsonName(expr.str(named));
  }
  static json names(const std::vector<std::string> &list) {
    json result = json::array();
    for (const std::string &name : list)
      result.push_back(jsonName(name));
    return result;
  }

  json describeTensor(const TensorSpec &spec) const {
    json dims = json::array();
    for (const ShapeExpr &dim : spec.dims)
      if (auto constant = dim.constantValue())
        dims.push_back(*constant);
      else
        dims.push_back(text(dim));
    return {{"name", jsonName(spec.name)},
            {"dtype", std::string(dtypeName(spec.dtype))},
            {"shape", dims}};
  }

  Result<json> describe() const {
    json result;
    result["file"] = {{"path", reader->name()}, {"bytes", reader->fileSize()}};
    if (!command.digest.empty())
      result["file"]["sha256"] = reader->digest();
    for (const TensorSpec &spec : manifest.signature.inputs)
      result["inputs"].push_back(describeTensor(spec));
    for (const TensorSpec &spec : manifest.signature.outputs)
      result["outputs"].push_back(describeTensor(spec));
    result["symbols"] = json::array();
    for (const Symbol &s : symbols)
      result["symbols"].push_back({{"name", jsonName(s.name)},
                                   {"min", s.min},
                                   {"opt", s.opt},
                                   {"max", s.max},
                                   {"divisor", s.divisor}});
    result["constraints"] = names(manifest.signature.constraintStrings());
    result["programs"] = json::array();
    for (const engine::Program &program : manifest.programs) {
      CHARONIA_ASSIGN_OR_RETURN(json entry, describeProgram(program));
      result["programs"].push_back(std::move(entry));
    }
    json sections = json::array();
    for (const engine::SectionInfo &section : reader->sections())
      sections.push_back({{"name", section.name}, {"bytes", section.size}});
    result["sections"] = std::move(sections);
    json options = json::array(), notes = json::object();
    for (const auto &[key, value] : manifest.build.options)
      options.push_back({{"name", key}, {"value", value}});
    for (const auto &[key, value] : manifest.build.notes)
      notes[key] = value;
    result["build"] = {{"compiler", manifest.build.compiler},
                       {"model", manifest.build.modelName},
                       {"source_hash", manifest.build.sourceHash},
                       {"options", options},
                       {"notes", notes}};
    return result;
  }

  Result<json> describeProgram(const engine::Program &program) const {
    CHARONIA_ASSIGN_OR_RETURN(plan::ProgramArena arena, planProgram(program));
    json entry = {{"device", std::string(deviceKindName(program.device))},
                  {"precision", program.precision},
                  {"launches", launches(program)},
                  {"launches_beside", besides(program)},
                  {"weight_bytes", weightBytes(program)},
                  {"arena",
                   {{"peak", arena.packed.peak},
                    {"lower_bound", arena.packed.lowerBound}}}};
    std::vector<Launches> launched = launchesOf(program);
    for (const engine::Variant &variant : program.variants) {
      json kernels = json::array();
      for (const engine::KernelCode &code : variant.kernels)
        kernels.push_back({{"entry", code.entry},
                           {"grid", text(code.grid, launched[kernels.size()])},
                           {"block_threads", code.blockThreads},
                           {"registers", code.registers},
                           {"spill_bytes", code.spillBytes},
                           {"shared_bytes", code.sharedBytes},
                           {"scratch_bytes", code.scratchBytes},
                           {"tensor_maps", code.maps.size()},
                           {"operations", code.operations},
                           {"needed_operations", code.neededOperations},
                           {"accessed_bytes", code.accessedBytes},
                           {"needed_bytes", code.neededBytes},
                           {"grain", code.grain}});
      entry["variants"].push_back(
          {{"arch", variant.arch}, {"kernels", kernels}});
    }
    for (size_t i = 0; i < program.kernels.size(); ++i) {
      const engine::Kernel &kernel = program.kernels[i];
      entry["kernels"].push_back({{"name", jsonName(kernel.name)},
                                  {"ops", names(kernel.ops)},
                                  {"flops", text(kernel.flops, launched[i])},
                                  {"bytes", text(kernel.bytes, launched[i])}});
    }
    for (const engine::Step &step : program.steps) {
      json buffers = json::array(), offsets = json::array(),
           sizes = json::array();
      for (uint32_t symbol : step.symbols)
        sizes.push_back(jsonName(symbols[symbol].name));
      for (const engine::Argument &argument : step.args) {
        buffers.push_back(argument.buffer);
        offsets.push_back(text(argument.offset));
      }
      bool launch = step.kind == engine::Step::Kind::Launch;
      entry["steps"].push_back(
          {{"kind", launch                                  ? "launch"
                    : step.kind == engine::Step::Kind::Copy ? "copy"
                                                            : "fill"},
           {"kernel", launch ? json(step.kernel) : json()},
           {"buffers", buffers},
           {"offsets", offsets},
           {"symbols", sizes},
           {"nodes", names(step.nodes)}});
    }
    for (const engine::Repeat &repeat : program.repeats)
      entry["repeats"].push_back(
          {{"first", repeat.first},
           {"last", repeat.last},
           {"symbol", jsonName(symbols[repeat.symbol].name)},
           {"count", text(repeat.count)}});
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      const engine::Buffer &buffer = program.buffers[i];
      json b = {{"kind", kindName(buffer.kind)},
                {"name", jsonName(buffer.name)},
                {"bytes", text(buffer.size)},
                {"first_step", buffer.firstStep},
                {"last_step", buffer.lastStep}};
      if (buffer.alias != engine::noIndex)
        b["alias"] = buffer.alias;
      if (arena.contains(i))
        b["offset"] = arena.offsetOf(i);
      entry["buffers"].push_back(std::move(b));
    }
    return entry;
  }

  const InspectCommand &command;
  std::shared_ptr<const engine::Reader> reader;
  const engine::Manifest &manifest;
  const std::vector<Symbol> &symbols;
  std::vector<int64_t> values;
};

} // namespace

int run(const InspectCommand &command) {
  auto reader = engine::Reader::open(
      command.engine, command.digest == "print" ? "" : command.digest);
  if (!reader)
    return fail(reader.status());
  Status status = Inspector(command, *reader).run();
  return status ? Done : fail(status);
}

} // namespace charonia::tool
