//===- ExecutionPlan.cpp - A program at one concrete shape ----------------===//

#include "runtime/exec/ExecutionPlan.h"
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
        tensor.alignment = std::max(tensor.alignment, buffer.alignment);
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

  /// Where buffer `b` lies, without the arena's packing: the outermost buffer
  /// of its aliases and the offset in it.
  Result<std::pair<uint32_t, uint64_t>> outermost(uint32_t b) const {
    uint64_t offset = 0;
    while (program.buffers[b].alias != noIndex) {
      const Buffer &inner = program.buffers[b];
      CHARONIA_ASSIGN_OR_RETURN(uint64_t step, evaluate(inner.aliasOffset));
      if (step > sizes[inner.alias] || sizes[b] > sizes[inner.alias] - step)
        return wrong("buffer " + std::to_string(b) +
                     " leaves the buffer that it is an alias of");
      offset += step;
      b = inner.alias;
    }
    return std::pair(b, offset);
  }

  Status planArena() {
    // Only what lies in the arena takes part; aliases of other memory do not.
    std::vector<plan::BufferRequest> requests;
    std::vector<uint32_t> requestOf(program.buffers.size(), noIndex);
    std::vector<std::pair<uint32_t, uint64_t>> roots;
    for (uint32_t b = 0; b < program.buffers.size(); ++b) {
      CHARONIA_ASSIGN_OR_RETURN(auto root, outermost(b));
      roots.push_back(root);
    }
    // Outermost buffers first, so that aliases can refer to them.
    for (bool aliases : {false, true})
      for (uint32_t b = 0; b < program.buffers.size(); ++b) {
        const Buffer &buffer = program.buffers[b];
        auto [root, offset] = roots[b];
        if (program.buffers[root].kind != Buffer::Kind::Arena ||
            aliases != (root != b))
          continue;
        plan::BufferRequest request;
        request.size = sizes[b];
        request.firstStep = buffer.firstStep;
        request.lastStep = buffer.lastStep;
        request.alignment = buffer.alignment;
        if (aliases) {
          request.alias = requestOf[root];
          request.aliasOffset = offset;
        }
        requestOf[b] = static_cast<uint32_t>(requests.size());
        requests.push_back(request);
      }
    auto packed = plan::planArena(requests);
    if (!packed)
      return packed.status();
    plan->arenaBytes = packed->peak;
    plan->arenaLowerBound = packed->lowerBound;
    plan->arenaAlignment = std::max<uint64_t>(64, packed->alignment);

    for (uint32_t b = 0; b < program.buffers.size(); ++b) {
      auto [root, offset] = roots[b];
      const Buffer &buffer = program.buffers[root];
      Location location{buffer.kind, 0, offset};
      if (buffer.kind == Buffer::Kind::Arena)
        location.offset = packed->offsets[requestOf[b]];
      else if (buffer.kind == Buffer::Kind::Weight)
        location.offset += buffer.weightOffset;
      else
        location.index = buffer.index;
      locations.push_back(location);
    }
    return Status::ok();
  }

  Status planSteps() {
    size_t count = 0;
    for (const Step &step : program.steps)
      count += step.args.size();
    plan->args.reserve(count); // Steps keep spans into it.
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
      } else if (step.kind == Step::Kind::Fill &&
                 planned.bytes % step.patternSize != 0) {
        return wrong("a fill ends inside its pattern");
      }
      plan->steps.push_back(planned);
    }
    return Status::ok();
  }

  const Signature &signature;
  const engine::Program &program;
  const engine::Variant &variant;
  std::unique_ptr<ExecutionPlan> plan;
  std::vector<uint64_t> sizes;
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
