//===- ExecutionPlan.cpp - A program at one concrete shape ----------------===//

#include "runtime/exec/ExecutionPlan.h"
#include "runtime/engine/TensorMaps.h"
#include "runtime/plan/ProgramArena.h"

#include <algorithm>
#include <utility>

namespace charonia::exec {

using engine::Buffer;
using engine::Step;

namespace {

// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col take.
// Coordinates of boxes are signed numbers of 32 bits, and boxes may overhang.
constexpr int64_t maxMapExtent = (int64_t(1) << 31) - 1024;
constexpr int64_t endOfMapStrides = int64_t(1) << 40;
constexpr uint64_t mapAlignment = 16;

std::string sentence(const char *what, size_t index, int64_t value) {
  return std::string(what) + " " + std::to_string(index) + " is " +
         std::to_string(value);
}

Result<std::vector<int64_t>> evaluateAll(const std::vector<ShapeExpr> &exprs,
                                         std::span<const int64_t> symbols) {
  std::vector<int64_t> values;
  values.reserve(exprs.size());
  for (const ShapeExpr &expr : exprs) {
    CHARONIA_ASSIGN_OR_RETURN(int64_t value, expr.evaluate(symbols));
    values.push_back(value);
  }
  return values;
}

/// Empty, or what is wrong with the sizes.
std::string wrongSizes(const PlannedMap &planned) {
  for (size_t i = 0; i < planned.extents.size(); ++i)
    if (int64_t extent = planned.extents[i];
        extent < 1 || extent > maxMapExtent)
      return sentence("extent", i, extent) + ", not 1 to " +
             std::to_string(maxMapExtent);
  for (size_t i = 0; i < planned.strides.size(); ++i)
    if (int64_t stride = planned.strides[i];
        stride < 0 || stride >= endOfMapStrides || stride % mapAlignment != 0)
      return sentence("stride", i, stride) +
             ", not a multiple of 16 from 0 to below " +
             std::to_string(endOfMapStrides);
  // Where base pixels walk, from lower to the last element and upper.
  for (size_t i = 0; i < planned.map->lower.size(); ++i)
    if (planned.extents[i + 1] + planned.map->upper[i] <= planned.map->lower[i])
      return "there is no base pixel along dimension " + std::to_string(i + 1);
  return {};
}

/// From the first byte to behind the last; the sizes are in their ranges. No
/// value if that has no 64 bits.
std::optional<uint64_t> bytesOf(const PlannedMap &planned) {
  uint64_t bytes = planned.extents[0] * planned.map->elementBytes;
  for (size_t i = 0; i < planned.strides.size(); ++i) {
    // Below 2^32 and 2^40.
    uint64_t apart;
    if (__builtin_mul_overflow(uint64_t(planned.extents[i + 1] - 1),
                               uint64_t(planned.strides[i]), &apart) ||
        __builtin_add_overflow(bytes, apart, &bytes))
      return std::nullopt;
  }
  return bytes;
}

class PlanBuilder {
public:
  PlanBuilder(const Signature &signature, const engine::Program &program,
              const engine::Variant &variant, std::span<const int64_t> symbols)
      : signature(signature), program(program), variant(variant),
        plan(std::make_unique<ExecutionPlan>()) {
    plan->symbols.assign(symbols.begin(), symbols.end());
  }

  Result<std::unique_ptr<ExecutionPlan>> build() {
    CHARONIA_RETURN_IF_ERROR(
        planTensors(signature.inputs, plan->inputs, "input"));
    CHARONIA_RETURN_IF_ERROR(
        planTensors(signature.outputs, plan->outputs, "output"));
    CHARONIA_RETURN_IF_ERROR(planBuffers());
    CHARONIA_RETURN_IF_ERROR(placeBuffers());
    CHARONIA_RETURN_IF_ERROR(planSteps());
    return std::move(plan);
  }

private:
  static Status wrong(const std::string &what) {
    return plan::doesNotFit(what);
  }

  Result<uint64_t> evaluate(const ShapeExpr &expr) const {
    return plan::evaluateSize(expr, plan->symbols, signature.symbols);
  }

  Status planTensors(const std::vector<TensorSpec> &specs,
                     std::vector<PlannedTensor> &out, const char *what) {
    for (const TensorSpec &spec : specs) {
      PlannedTensor tensor;
      CHARONIA_ASSIGN_OR_RETURN(tensor.shape,
                                signature.evaluateShape(spec, plan->symbols));
      auto bytes = tensorBytes(spec.dtype, tensor.shape);
      if (!bytes)
        return bytes.status().withContext("the " + std::string(what) + " '" +
                                          spec.name + "'");
      tensor.bytes = *bytes;
      out.push_back(std::move(tensor));
    }
    return Status::ok();
  }

  Status planBuffers() {
    CHARONIA_ASSIGN_OR_RETURN(
        arena, plan::planProgram(program, plan->symbols, signature.symbols));
    for (uint32_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer &buffer = program.buffers[b];
      uint64_t size = arena.sizes[b];
      auto check = [&](std::vector<PlannedTensor> &tensors) {
        PlannedTensor &tensor = tensors[buffer.index];
        raiseAlignment(tensor, buffer.alignment);
        return size == tensor.bytes
                   ? Status::ok()
                   : wrong("a buffer of " + std::to_string(size) +
                           " bytes stands for a tensor of " +
                           std::to_string(tensor.bytes));
      };
      if (buffer.kind == Buffer::Kind::Input)
        CHARONIA_RETURN_IF_ERROR(check(plan->inputs));
      if (buffer.kind == Buffer::Kind::Output)
        CHARONIA_RETURN_IF_ERROR(check(plan->outputs));
    }
    return Status::ok();
  }

  /// An alias must be aligned as it says: in a weight by its place, in the
  /// caller's memory by what is asked of the caller (the planner looks after
  /// the arena).
  Status placeAlias(const Buffer &alias, const Buffer &root, size_t number,
                    uint64_t offset) {
    if (offset % alias.alignment != 0)
      return wrong("buffer " + std::to_string(number) +
                   " is not aligned inside the buffer that it is an alias of");
    if (root.kind == Buffer::Kind::Input)
      raiseAlignment(plan->inputs[root.index], alias.alignment);
    if (root.kind == Buffer::Kind::Output)
      raiseAlignment(plan->outputs[root.index], alias.alignment);
    return Status::ok();
  }

  static void raiseAlignment(PlannedTensor &tensor, uint32_t alignment) {
    tensor.alignment = std::max(tensor.alignment, alignment);
  }

  Status placeBuffers() {
    plan->arenaBytes = arena.packed.peak;
    plan->arenaLowerBound = arena.packed.lowerBound;
    plan->arenaAlignment = std::max<uint64_t>(64, arena.packed.alignment);

    for (uint32_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer &root = program.buffers[arena.roots[b].buffer];
      Location location{root.kind, 0, arena.roots[b].offset};
      if (root.kind == Buffer::Kind::Weight)
        location.offset += root.weightOffset;
      else if (root.kind != Buffer::Kind::Arena)
        location.index = root.index;
      if (root.kind == Buffer::Kind::Arena)
        location.offset = arena.offsetOf(b);
      else
        CHARONIA_RETURN_IF_ERROR(
            placeAlias(program.buffers[b], root, b, location.offset));
      locations.push_back(location);
    }
    return Status::ok();
  }

  Status checkCopy(const PlannedStep &step) const {
    const Location &to = step.args[0], &from = step.args[1];
    uint64_t apart = to.offset > from.offset ? to.offset - from.offset
                                             : from.offset - to.offset;
    // What lies in one place already need not be copied.
    if (to.base == from.base && to.index == from.index && apart != 0 &&
        apart < step.bytes)
      return wrong("a copy's source and destination overlap");
    return Status::ok();
  }

  Status checkFill(const PlannedStep &step) {
    uint32_t pattern = step.step->patternSize;
    const Location &to = step.args[0];
    if (step.bytes % pattern != 0)
      return wrong("a fill ends inside its pattern");
    if (to.offset % pattern != 0)
      return wrong("a fill is not aligned to its pattern");
    if (to.base == Buffer::Kind::Output)
      raiseAlignment(plan->outputs[to.index], pattern);
    return Status::ok();
  }

  /// Indices of 32 bits are faster, and the code has them where larger tensors
  /// were not asked for.
  Status checkIndexed(const PlannedStep &planned) const {
    auto elements = planned.code->indexed.evaluate(planned.symbols);
    if (elements && *elements <= engine::maxIndexed)
      return Status::ok();
    const Step &step = *planned.step;
    std::string sizes;
    for (size_t i = 0; i < step.symbols.size(); ++i)
      sizes += (i ? ", " : "") + signature.symbols[step.symbols[i]].name +
               " = " + std::to_string(planned.symbols[i]);
    uint32_t largest = engine::noIndex;
    for (const engine::Argument &arg : step.args)
      if (largest == engine::noIndex ||
          arena.sizes[arg.buffer] > arena.sizes[largest])
        largest = arg.buffer;
    return Status(
        StatusCode::OutOfRange,
        "kernel '" + planned.kernel->name + "' has to tell " +
            (elements ? std::to_string(*elements) : "2^63 or more") +
            " elements apart at " + sizes +
            (largest == engine::noIndex || program.buffers[largest].name.empty()
                 ? ""
                 : " (its largest tensor is '" + program.buffers[largest].name +
                       "')") +
            ", and was compiled to tell " + std::to_string(engine::maxIndexed) +
            "; compile with a --shape whose optimum is that large");
  }

  /// What is wrong with where a map's tensor lies, or nothing.
  std::string wrongPlace(const PlannedStep &step, const PlannedMap &map) {
    uint32_t buffer = step.step->args[map.map->argument].buffer;
    const Location &location = step.args[map.map->argument];
    uint64_t size = arena.sizes[buffer];
    uint64_t offset = location.offset - locations[buffer].offset;
    std::optional<uint64_t> bytes = bytesOf(map);
    if (!bytes || *bytes > size - offset)
      return "it takes " +
             (bytes ? std::to_string(*bytes) + " bytes"
                    : "2^64 bytes or more") +
             " from byte " + std::to_string(offset) + " of buffer " +
             std::to_string(buffer) + ", which has " + std::to_string(size);
    // The offset in memory whose address the device or the caller chooses.
    if (location.offset % mapAlignment != 0)
      return "byte " + std::to_string(offset) + " of buffer " +
             std::to_string(buffer) + ", where it begins, is not aligned to " +
             std::to_string(mapAlignment);
    if (location.base == Buffer::Kind::Input)
      raiseAlignment(plan->inputs[location.index], mapAlignment);
    if (location.base == Buffer::Kind::Output)
      raiseAlignment(plan->outputs[location.index], mapAlignment);
    return {};
  }

  Status planMap(PlannedStep &step, const engine::TensorMap &map) {
    PlannedMap planned;
    planned.map = &map;
    CHARONIA_ASSIGN_OR_RETURN(planned.extents,
                              evaluateAll(map.extents, step.symbols));
    CHARONIA_ASSIGN_OR_RETURN(planned.strides,
                              evaluateAll(map.strides, step.symbols));
    std::string problem = wrongSizes(planned);
    if (problem.empty())
      problem = wrongPlace(step, planned);
    if (!problem.empty())
      return Status(StatusCode::Corrupt, problem);
    plan->mapBytes +=
        sizeof(planned) +
        (planned.extents.size() + planned.strides.size()) * sizeof(int64_t);
    step.maps.push_back(std::move(planned));
    return Status::ok();
  }

  Status planMaps(PlannedStep &step) {
    const std::vector<engine::TensorMap> &maps = step.code->maps;
    step.maps.reserve(maps.size());
    for (size_t i = 0; i < maps.size(); ++i)
      if (Status status = planMap(step, maps[i]); !status)
        return wrong("tensor map " + std::to_string(i) + " of kernel '" +
                     step.kernel->name + "': " + status.message());
    return Status::ok();
  }

  /// What a kernel is told, and how many instances of it there are.
  Status planLaunch(PlannedStep &planned) {
    const Step &step = *planned.step;
    planned.kernelIndex = step.kernel;
    planned.kernel = &program.kernels[step.kernel];
    planned.code = &variant.kernels[step.kernel];
    size_t first = plan->stepSymbols.size();
    for (uint32_t symbol : step.symbols)
      plan->stepSymbols.push_back(plan->symbols[symbol]);
    planned.symbols =
        std::span(plan->stepSymbols).subspan(first, step.symbols.size());
    CHARONIA_RETURN_IF_ERROR(checkIndexed(planned));
    CHARONIA_ASSIGN_OR_RETURN(planned.grid,
                              planned.code->grid.evaluate(planned.symbols));
    if (planned.grid < 0)
      return wrong("a launch of kernel " + std::to_string(step.kernel) +
                   " has " + std::to_string(planned.grid) +
                   " program instances");
    return planned.grid == 0 ? Status::ok() : planMaps(planned);
  }

  Status planStep(const Step &step, int64_t time) {
    PlannedStep planned;
    planned.step = &step;
    planned.time = time;
    CHARONIA_ASSIGN_OR_RETURN(planned.bytes, evaluate(step.bytes));
    size_t first = plan->args.size();
    for (const engine::Argument &arg : step.args) {
      CHARONIA_ASSIGN_OR_RETURN(uint64_t offset, evaluate(arg.offset));
      uint64_t size = arena.sizes[arg.buffer];
      // Of a tensor without elements no part is read, wherever it begins.
      if (size == 0 && step.kind == Step::Kind::Launch)
        offset = 0;
      if (offset > size ||
          (step.kind != Step::Kind::Launch && planned.bytes > size - offset))
        return wrong("a step leaves buffer " + std::to_string(arg.buffer));
      Location location = locations[arg.buffer];
      location.offset += offset;
      plan->args.push_back(location);
    }
    planned.args = std::span(plan->args).subspan(first, step.args.size());
    if (step.kind == Step::Kind::Launch) {
      CHARONIA_RETURN_IF_ERROR(planLaunch(planned));
    } else {
      CHARONIA_RETURN_IF_ERROR(step.kind == Step::Kind::Copy
                                   ? checkCopy(planned)
                                   : checkFill(planned));
    }
    plan->steps.push_back(std::move(planned));
    return Status::ok();
  }

  /// Steps [first, last), as often as each is repeated.
  struct Stretch {
    size_t first, last;
    const engine::Repeat *repeat;
    uint64_t times;
  };

  /// What planning a step evaluates, in terms of expressions, and itself.
  uint64_t termsOf(const Step &step) const {
    uint64_t terms = 1 + step.bytes.terms().size();
    for (const engine::Argument &arg : step.args)
      terms += 1 + arg.offset.terms().size();
    if (step.kind != Step::Kind::Launch)
      return terms;
    const engine::KernelCode &code = variant.kernels[step.kernel];
    terms += code.grid.terms().size() + code.indexed.terms().size();
    for (const engine::TensorMap &map : code.maps)
      terms += engine::countTerms(map);
    return terms + step.symbols.size();
  }

  /// What is repeated and what lies between. Fails where all times of all
  /// repeats are too many steps, or too much to evaluate.
  Result<std::vector<Stretch>> stretches() const {
    constexpr uint64_t mostSteps = uint64_t(1) << 20;
    constexpr uint64_t mostTerms = uint64_t(1) << 28;
    uint64_t stepsLeft = mostSteps, termsLeft = mostTerms;
    std::vector<Stretch> found;
    size_t next = 0;
    for (const engine::Repeat &repeat : program.repeats) {
      CHARONIA_ASSIGN_OR_RETURN(uint64_t times, evaluate(repeat.count));
      uint64_t inside = repeat.last - repeat.first, terms = 0;
      for (size_t i = repeat.first; i < repeat.last; ++i)
        terms += termsOf(program.steps[i]);
      if (times > stepsLeft / inside || times > termsLeft / terms)
        return Status(StatusCode::OutOfRange,
                      "a loop of " + std::to_string(inside) + " steps runs " +
                          std::to_string(times) + " times: more than " +
                          std::to_string(mostSteps) +
                          " steps in all loops, or too much to plan; split the "
                          "sequence");
      stepsLeft -= times * inside;
      termsLeft -= times * terms;
      found.push_back({next, repeat.first, nullptr, 1});
      found.push_back({repeat.first, repeat.last, &repeat, times});
      next = repeat.last;
    }
    found.push_back({next, program.steps.size(), nullptr, 1});
    return found;
  }

  Status planSteps() {
    CHARONIA_ASSIGN_OR_RETURN(std::vector<Stretch> all, stretches());
    size_t steps = 0, args = 0, symbols = 0;
    for (const Stretch &stretch : all)
      for (size_t i = stretch.first; i < stretch.last; ++i) {
        const Step &step = program.steps[i];
        steps += stretch.times;
        args += step.args.size() * stretch.times;
        symbols += step.symbols.size() * stretch.times;
      }
    plan->args.reserve(args); // Steps keep spans into these two.
    plan->stepSymbols.reserve(symbols);
    plan->steps.reserve(steps);
    for (const Stretch &stretch : all) {
      for (uint64_t time = 0; time < stretch.times; ++time) {
        int64_t outside = 0;
        if (stretch.repeat)
          outside = std::exchange(plan->symbols[stretch.repeat->symbol],
                                  static_cast<int64_t>(time) + 1);
        for (size_t i = stretch.first; i < stretch.last; ++i)
          CHARONIA_RETURN_IF_ERROR(
              planStep(program.steps[i], static_cast<int64_t>(time)));
        if (stretch.repeat)
          plan->symbols[stretch.repeat->symbol] = outside;
      }
    }
    return Status::ok();
  }

  const Signature &signature;
  const engine::Program &program;
  const engine::Variant &variant;
  std::unique_ptr<ExecutionPlan> plan;
  plan::ProgramArena arena;
  std::vector<Location> locations;
};

} // namespace

Result<std::unique_ptr<ExecutionPlan>>
makeExecutionPlan(const Signature &signature, const engine::Program &program,
                  const engine::Variant &variant,
                  std::span<const int64_t> symbols) {
  return PlanBuilder(signature, program, variant, symbols).build();
}

} // namespace charonia::exec
