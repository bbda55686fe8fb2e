//===- ExecutionPlan.cpp - A program at one concrete shape ----------------===//

#include "runtime/exec/ExecutionPlan.h"
#include "runtime/engine/Aliases.h"
#include "runtime/plan/Planner.h"

#include <algorithm>

namespace charonia::exec {

using engine::Buffer;
using engine::noIndex;
using engine::Step;

namespace {

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
    CHARONIA_RETURN_IF_ERROR(planArena());
    CHARONIA_RETURN_IF_ERROR(planSteps());
    return std::move(plan);
  }

private:
  static Status wrong(const std::string &what) {
    return Status(StatusCode::Corrupt,
                  "the engine's program does not fit this shape: " + what);
  }

  Result<uint64_t> evaluate(const ShapeExpr &expr) const {
    auto value = expr.evaluate(plan->symbols);
    if (!value)
      return value.status();
    if (*value < 0)
      return wrong("the size " + expr.str(signature.symbols) + " is negative");
    return static_cast<uint64_t>(*value);
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
    sizes.reserve(program.buffers.size());
    for (const Buffer &buffer : program.buffers) {
      CHARONIA_ASSIGN_OR_RETURN(uint64_t size, evaluate(buffer.size));
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
      sizes.push_back(size);
    }
    return Status::ok();
  }

  /// Where every buffer lies, without the arena's packing: the outermost
  /// buffer of its aliases and the offset in it.
  Status findRoots() {
    const std::vector<Buffer> &buffers = program.buffers;
    roots.resize(buffers.size());
    for (uint32_t b : engine::orderAliases(buffers.size(), [&](uint32_t i) {
                        return buffers[i].alias;
                      }).order) {
      uint32_t outer = buffers[b].alias;
      if (outer == noIndex) {
        roots[b] = {b, 0};
        continue;
      }
      CHARONIA_ASSIGN_OR_RETURN(uint64_t offset,
                                evaluate(buffers[b].aliasOffset));
      if (offset > sizes[outer] || sizes[b] > sizes[outer] - offset)
        return wrong("buffer " + std::to_string(b) +
                     " leaves the buffer that it is an alias of");
      roots[b] = {roots[outer].buffer, roots[outer].offset + offset};
    }
    return Status::ok();
  }

  /// Only what lies in the arena takes part; aliases of other memory do not.
  Result<plan::ArenaPlan> packArena(std::vector<uint32_t> &requestOf) {
    std::vector<plan::BufferRequest> requests;
    requestOf.assign(program.buffers.size(), noIndex);
    // Outermost buffers first, so that aliases can refer to them.
    for (bool aliases : {false, true})
      for (uint32_t b = 0; b < program.buffers.size(); ++b) {
        const Buffer &buffer = program.buffers[b];
        Root root = roots[b];
        if (program.buffers[root.buffer].kind != Buffer::Kind::Arena ||
            aliases != (root.buffer != b))
          continue;
        plan::BufferRequest request;
        request.size = sizes[b];
        request.firstStep = buffer.firstStep;
        request.lastStep = buffer.lastStep;
        request.alignment = buffer.alignment;
        if (aliases) {
          request.alias = requestOf[root.buffer];
          request.aliasOffset = root.offset;
        }
        requestOf[b] = static_cast<uint32_t>(requests.size());
        requests.push_back(request);
      }
    return plan::planArena(requests);
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

  Status planArena() {
    CHARONIA_RETURN_IF_ERROR(findRoots());
    std::vector<uint32_t> requestOf;
    auto packed = packArena(requestOf);
    if (!packed)
      return packed.status();
    plan->arenaBytes = packed->peak;
    plan->arenaLowerBound = packed->lowerBound;
    plan->arenaAlignment = std::max<uint64_t>(64, packed->alignment);

    for (uint32_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer &root = program.buffers[roots[b].buffer];
      Location location{root.kind, 0, roots[b].offset};
      if (root.kind == Buffer::Kind::Weight)
        location.offset += root.weightOffset;
      else if (root.kind != Buffer::Kind::Arena)
        location.index = root.index;
      if (root.kind == Buffer::Kind::Arena)
        location.offset = packed->offsets[requestOf[b]];
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

  Status planSteps() {
    size_t count = 0;
    for (const Step &step : program.steps)
      count += step.args.size();
    plan->args.reserve(count); // Steps keep spans into it.
    plan->steps.reserve(program.steps.size());
    for (const Step &step : program.steps) {
      PlannedStep planned;
      planned.step = &step;
      CHARONIA_ASSIGN_OR_RETURN(planned.bytes, evaluate(step.bytes));
      size_t first = plan->args.size();
      for (const engine::Argument &arg : step.args) {
        CHARONIA_ASSIGN_OR_RETURN(uint64_t offset, evaluate(arg.offset));
        uint64_t size = sizes[arg.buffer];
        if (offset > size ||
            (step.kind != Step::Kind::Launch && planned.bytes > size - offset))
          return wrong("a step leaves buffer " + std::to_string(arg.buffer));
        Location location = locations[arg.buffer];
        location.offset += offset;
        plan->args.push_back(location);
      }
      planned.args = std::span(plan->args).subspan(first, step.args.size());
      if (step.kind == Step::Kind::Launch) {
        planned.kernelIndex = step.kernel;
        planned.kernel = &program.kernels[step.kernel];
        planned.code = &variant.kernels[step.kernel];
        CHARONIA_ASSIGN_OR_RETURN(uint64_t grid, evaluate(planned.code->grid));
        planned.grid = static_cast<int64_t>(grid);
      } else {
        CHARONIA_RETURN_IF_ERROR(step.kind == Step::Kind::Copy
                                     ? checkCopy(planned)
                                     : checkFill(planned));
      }
      plan->steps.push_back(planned);
    }
    return Status::ok();
  }

  const Signature &signature;
  const engine::Program &program;
  const engine::Variant &variant;
  std::unique_ptr<ExecutionPlan> plan;
  struct Root {
    uint32_t buffer = 0;
    uint64_t offset = 0;
  };
  std::vector<uint64_t> sizes;
  std::vector<Root> roots;
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
