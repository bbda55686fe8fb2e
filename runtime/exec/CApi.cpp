//===- CApi.cpp - The runtime for C and other languages -------------------===//

#include "charonia/charonia.h"
#include "charonia/runtime.h"
#include "runtime/engine/Guard.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

using namespace charonia;

namespace {

/// The message of this thread's last failure; without one if even for that
/// there is no memory.
thread_local std::string lastError;

charonia_status report(const Status &status) noexcept {
  if (!status.isOk()) {
    try {
      lastError = status.message();
    } catch (const std::bad_alloc &) {
      lastError = "out of memory"; // Without memory of its own.
    }
  }
  return static_cast<charonia_status>(status.code());
}

/// Whether this may be the size of a struct of any version: one that was not
/// initialized would have us write anywhere.
bool isSize(size_t size) { return size >= sizeof(size) && size <= 1 << 16; }

/// A struct of the caller's as this library knows it, whatever version of the
/// header it was built with; defaults if there is none.
template <typename T> Result<T> readSized(const T *given, const char *name) {
  T known = {};
  if (!given)
    return known;
  size_t size = given->size;
  if (!isSize(size))
    return Status(StatusCode::InvalidArgument,
                  std::string(name) + "::size must be its sizeof");
  auto *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      return Status(
          StatusCode::Unsupported,
          std::string(name) + " has fields that this library, version " +
              std::string(version()) + ", does not know; they must be zero");
  std::memcpy(&known, given, std::min(size, sizeof(T)));
  return known;
}

/// Fills the fields that the caller's header knows; the others become zero.
template <typename T> Status writeSized(T value, T *out, const char *name) {
  size_t size = out->size;
  if (!isSize(size))
    return Status(StatusCode::InvalidArgument,
                  std::string(name) + "::size must be its sizeof");
  value.size = size;
  std::memcpy(out, &value, std::min(size, sizeof(T)));
  if (size > sizeof(T))
    std::memset(reinterpret_cast<char *>(out) + sizeof(T), 0, size - sizeof(T));
  return Status::ok();
}

/// Strings as C has them; they stay where they are.
std::vector<const char *> pointers(const std::vector<std::string> &strings) {
  std::vector<const char *> result;
  for (const std::string &string : strings)
    result.push_back(string.c_str());
  return result;
}

Status isNull(const char *what) {
  return Status(StatusCode::InvalidArgument, std::string(what) + " is null");
}

Status noSuch(const char *what, size_t index) {
  return Status(StatusCode::NotFound, std::string("there is no ") + what + " " +
                                          std::to_string(index));
}

charonia_status reportNull(const char *what) {
  return report(guarded([&]() -> Status { return isNull(what); }));
}

/// Shape and type of an input or output as C sees them, made when they are
/// asked for: nothing limits what a damaged engine's shapes come to.
struct TensorText {
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::string> text;
};

/// A constraint as C sees it.
struct ConstraintText {
  std::string left, right, text;
};

/// A program as C sees it.
struct ProgramText {
  ProgramInfo info;
  std::string device;
  std::vector<const char *> archs;

  explicit ProgramText(ProgramInfo given)
      : info(std::move(given)), device(deviceKindName(info.device)),
        archs(pointers(info.archs)) {}
  ProgramText(ProgramText &&) = default; // The strings stay where they are.
};

} // namespace

struct charonia_engine {
  charonia_engine(Engine given, std::vector<ProgramText> programs)
      : engine(std::move(given)), inputs(engine.signature().inputs.size()),
        outputs(engine.signature().outputs.size()),
        programs(std::move(programs)) {}

  Engine engine;
  mutable std::mutex mutex; ///< Of the next three.
  mutable std::vector<TensorText> inputs;
  mutable std::vector<TensorText> outputs;
  mutable std::vector<ConstraintText> constraints; ///< Made when asked for.
  std::vector<ProgramText> programs;
};

struct charonia_context {
  Context context;
  std::string description;
  std::map<std::string, std::vector<int64_t>> outputShapes;
  std::map<std::string, std::vector<int64_t>> futureShapes;
};

struct charonia_profile {
  std::vector<StepProfile> steps;
  struct Lists {
    std::vector<const char *> ops;
    std::vector<const char *> nodes;
  };
  std::vector<Lists> lists;
};

namespace {

Result<LoadOptions> convert(const charonia_load_options *given) {
  CHARONIA_ASSIGN_OR_RETURN(charonia_load_options options,
                            readSized(given, "charonia_load_options"));
  LoadOptions converted;
  converted.verifyWeights = !options.no_verify_weights;
  converted.allowHostCode = !options.no_host_code;
  converted.borrowMemory = options.borrow_memory;
  converted.digest = options.digest ? options.digest : "";
  return converted;
}

Result<ContextOptions> convert(const charonia_context_options *given) {
  CHARONIA_ASSIGN_OR_RETURN(charonia_context_options options,
                            readSized(given, "charonia_context_options"));
  ContextOptions converted;
  converted.threads = options.threads;
  converted.isa = options.isa ? options.isa : "";
  converted.precision = options.precision ? options.precision : "";
  converted.stream = options.stream;
  converted.cudaGraph = !options.no_cuda_graph;
  converted.overlapKernels = !options.no_kernel_overlap;
  return converted;
}

Status wrap(Result<Engine> engine, charonia_engine **out) {
  if (!engine)
    return engine.status();
  std::vector<ProgramText> programs;
  for (ProgramInfo &program : engine->programs())
    programs.emplace_back(std::move(program));
  *out = new charonia_engine(*engine, std::move(programs));
  return Status::ok();
}

charonia_status tensorInfo(const charonia_engine &engine,
                           const std::vector<TensorSpec> &specs,
                           std::vector<TensorText> &texts, size_t index,
                           charonia_tensor *info, const char **text) {
  return report(guarded([&]() -> Status {
    if (index >= specs.size())
      return noSuch("input or output", index);
    const Signature &signature = engine.engine.signature();
    const TensorSpec &spec = specs[index];
    std::lock_guard lock(engine.mutex);
    TensorText &made = texts[index];
    if (info && !made.shape) {
      std::vector<int64_t> opts;
      for (const Symbol &symbol : signature.symbols)
        opts.push_back(symbol.opt);
      CHARONIA_ASSIGN_OR_RETURN(made.shape,
                                signature.evaluateShape(spec, opts));
    }
    if (text && !made.text)
      made.text = signature.typeString(spec);
    if (info)
      *info = {static_cast<charonia_dtype>(spec.dtype), CHARONIA_HOST,
               made.shape->size(), made.shape->data(), nullptr};
    if (text)
      *text = made.text->c_str();
    return Status::ok();
  }));
}

} // namespace

const char *charonia_version(void) {
  static const std::string text(version());
  return text.c_str();
}

const char *charonia_last_error(void) { return lastError.c_str(); }

unsigned charonia_dtype_bits(charonia_dtype type) {
  return dtypeBits(static_cast<DType>(type));
}

charonia_status charonia_engine_load(const char *path,
                                     charonia_engine **engine) {
  return charonia_engine_load_with(path, nullptr, engine);
}

charonia_status charonia_engine_load_memory(const void *bytes, size_t size,
                                            charonia_engine **engine) {
  return charonia_engine_load_memory_with(bytes, size, nullptr, engine);
}

charonia_status charonia_engine_load_with(const char *path,
                                          const charonia_load_options *options,
                                          charonia_engine **engine) {
  return report(guarded([&]() -> Status {
    if (!path || !engine)
      return isNull("the path or the result");
    CHARONIA_ASSIGN_OR_RETURN(LoadOptions converted, convert(options));
    return wrap(Engine::load(std::string(path), converted), engine);
  }));
}

charonia_status
charonia_engine_load_memory_with(const void *bytes, size_t size,
                                 const charonia_load_options *options,
                                 charonia_engine **engine) {
  return report(guarded([&]() -> Status {
    if (!bytes || !engine)
      return isNull("the memory or the result");
    CHARONIA_ASSIGN_OR_RETURN(LoadOptions converted, convert(options));
    return wrap(
        Engine::load(std::span(static_cast<const std::byte *>(bytes), size),
                     converted),
        engine);
  }));
}

charonia_status charonia_engine_digest(const charonia_engine *engine,
                                       char digest[65]) {
  return report(guarded([&]() -> Status {
    if (!engine || !digest)
      return isNull("the engine or the result");
    CHARONIA_ASSIGN_OR_RETURN(std::string text, engine->engine.digest());
    std::memcpy(digest, text.c_str(), text.size() + 1);
    return Status::ok();
  }));
}

void charonia_engine_free(charonia_engine *engine) { delete engine; }

size_t charonia_num_inputs(const charonia_engine *engine) {
  return engine ? engine->inputs.size() : 0;
}

size_t charonia_num_outputs(const charonia_engine *engine) {
  return engine ? engine->outputs.size() : 0;
}

const char *charonia_input_name(const charonia_engine *engine, size_t index) {
  return index < charonia_num_inputs(engine)
             ? engine->engine.signature().inputs[index].name.c_str()
             : nullptr;
}

const char *charonia_output_name(const charonia_engine *engine, size_t index) {
  return index < charonia_num_outputs(engine)
             ? engine->engine.signature().outputs[index].name.c_str()
             : nullptr;
}

charonia_status charonia_input_info(const charonia_engine *engine, size_t index,
                                    charonia_tensor *info, const char **text) {
  if (!engine)
    return reportNull("the engine");
  return tensorInfo(*engine, engine->engine.signature().inputs, engine->inputs,
                    index, info, text);
}

charonia_status charonia_output_info(const charonia_engine *engine,
                                     size_t index, charonia_tensor *info,
                                     const char **text) {
  if (!engine)
    return reportNull("the engine");
  return tensorInfo(*engine, engine->engine.signature().outputs,
                    engine->outputs, index, info, text);
}

size_t charonia_num_symbols(const charonia_engine *engine) {
  return engine ? engine->engine.signature().symbols.size() : 0;
}

charonia_status charonia_symbol_info(const charonia_engine *engine,
                                     size_t index, charonia_symbol *symbol) {
  return report(guarded([&]() -> Status {
    if (!engine || !symbol)
      return isNull("the engine or the result");
    if (index >= charonia_num_symbols(engine))
      return noSuch("shape symbol", index);
    const Symbol &from = engine->engine.signature().symbols[index];
    return writeSized(charonia_symbol{0, from.name.c_str(), from.min, from.opt,
                                      from.max, from.divisor},
                      symbol, "charonia_symbol");
  }));
}

size_t charonia_num_constraints(const charonia_engine *engine) {
  return engine ? engine->engine.signature().constraints.size() : 0;
}

charonia_status charonia_constraint_info(const charonia_engine *engine,
                                         size_t index,
                                         charonia_constraint *constraint) {
  return report(guarded([&]() -> Status {
    if (!engine || !constraint)
      return isNull("the engine or the result");
    if (index >= charonia_num_constraints(engine))
      return noSuch("constraint", index);
    const Signature &signature = engine->engine.signature();
    const Constraint &from = signature.constraints[index];
    std::lock_guard lock(engine->mutex);
    if (engine->constraints.empty()) {
      std::vector<ConstraintText> made;
      std::vector<std::string> texts = signature.constraintStrings();
      for (size_t i = 0; i < texts.size(); ++i) {
        const Constraint &c = signature.constraints[i];
        made.push_back({c.left.str(signature.symbols),
                        c.right.str(signature.symbols), std::move(texts[i])});
      }
      engine->constraints = std::move(made);
    }
    const ConstraintText &made = engine->constraints[index];
    return writeSized(
        charonia_constraint{0, static_cast<charonia_relation>(from.relation),
                            made.left.c_str(), made.right.c_str(),
                            from.reason.c_str(), made.text.c_str()},
        constraint, "charonia_constraint");
  }));
}

size_t charonia_num_programs(const charonia_engine *engine) {
  return engine ? engine->programs.size() : 0;
}

charonia_status charonia_program_info(const charonia_engine *engine,
                                      size_t index, charonia_program *program) {
  return report(guarded([&]() -> Status {
    if (!engine || !program)
      return isNull("the engine or the result");
    if (index >= engine->programs.size())
      return noSuch("program", index);
    const ProgramText &from = engine->programs[index];
    return writeSized(charonia_program{0, from.device.c_str(),
                                       from.info.precision.c_str(),
                                       from.archs.data(), from.archs.size(),
                                       from.info.kernels},
                      program, "charonia_program");
  }));
}

charonia_status charonia_context_create(const charonia_engine *engine,
                                        const char *device,
                                        const charonia_context_options *options,
                                        charonia_context **context) {
  return report(guarded([&]() -> Status {
    if (!engine || !device || !context)
      return isNull("the engine, the device or the result");
    CHARONIA_ASSIGN_OR_RETURN(Device parsed, parseDevice(device));
    CHARONIA_ASSIGN_OR_RETURN(ContextOptions converted, convert(options));
    CHARONIA_ASSIGN_OR_RETURN(Context made,
                              engine->engine.createContext(parsed, converted));
    std::string description = made.description();
    *context =
        new charonia_context{std::move(made), std::move(description), {}, {}};
    return Status::ok();
  }));
}

void charonia_context_free(charonia_context *context) { delete context; }

charonia_status charonia_set_input(charonia_context *context, const char *name,
                                   const charonia_tensor *tensor) {
  return report(guarded([&]() -> Status {
    if (!context || !name || !tensor || (tensor->rank && !tensor->shape))
      return isNull("the context, the name, the tensor or its shape");
    // The rank says how much of the caller's array is read.
    const Signature &signature = context->context.signature();
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature.findInput(name));
    const TensorSpec &spec = signature.inputs[index];
    if (tensor->rank != spec.dims.size())
      return Status(StatusCode::InvalidArgument,
                    "the input '" + spec.name + "' takes " +
                        signature.typeString(spec) + ", not a tensor of rank " +
                        std::to_string(tensor->rank));
    return context->context.setInput(
        index, {static_cast<DType>(tensor->dtype),
                {tensor->shape, tensor->shape + tensor->rank},
                tensor->data,
                static_cast<Memory>(tensor->memory)});
  }));
}

charonia_status charonia_set_output(charonia_context *context, const char *name,
                                    void *data, size_t capacity,
                                    charonia_memory memory) {
  if (!context || !name)
    return reportNull("the context or the name");
  return report(context->context.setOutput(name, data, capacity,
                                           static_cast<Memory>(memory)));
}

charonia_status charonia_allocate_output(charonia_context *context,
                                         const char *name,
                                         charonia_memory memory) {
  if (!context || !name)
    return reportNull("the context or the name");
  return report(
      context->context.allocateOutput(name, static_cast<Memory>(memory)));
}

charonia_status charonia_run(charonia_context *context) {
  if (!context)
    return reportNull("the context");
  return report(context->context.run());
}

charonia_status charonia_run_async(charonia_context *context, void *stream) {
  if (!context)
    return reportNull("the context");
  return report(context->context.runAsync(stream));
}

charonia_status charonia_synchronize(charonia_context *context) {
  if (!context)
    return reportNull("the context");
  return report(context->context.synchronize());
}

charonia_status charonia_output(charonia_context *context, const char *name,
                                charonia_tensor *tensor) {
  return report(guarded([&]() -> Status {
    if (!context || !name || !tensor)
      return isNull("the context, the name or the result");
    CHARONIA_ASSIGN_OR_RETURN(Tensor output, context->context.output(name));
    std::vector<int64_t> &shape = context->outputShapes[name];
    shape = std::move(output.shape);
    *tensor = {static_cast<charonia_dtype>(output.dtype),
               static_cast<charonia_memory>(output.memory), shape.size(),
               shape.data(), output.data};
    return Status::ok();
  }));
}

charonia_status charonia_output_shape(charonia_context *context,
                                      const char *name, const int64_t **shape,
                                      size_t *rank) {
  return report(guarded([&]() -> Status {
    if (!context || !name || !shape || !rank)
      return isNull("the context, the name or the result");
    CHARONIA_ASSIGN_OR_RETURN(std::vector<int64_t> found,
                              context->context.outputShape(name));
    std::vector<int64_t> &kept = context->futureShapes[name];
    kept = std::move(found);
    *shape = kept.data();
    *rank = kept.size();
    return Status::ok();
  }));
}

const char *charonia_context_description(const charonia_context *context) {
  return context ? context->description.c_str() : nullptr;
}

unsigned charonia_context_threads(const charonia_context *context) {
  return context ? context->context.threads() : 0;
}

charonia_status charonia_context_memory(const charonia_context *context,
                                        charonia_memory_info *memory) {
  return report(guarded([&]() -> Status {
    if (!context || !memory)
      return isNull("the context or the result");
    CHARONIA_ASSIGN_OR_RETURN(MemoryInfo info, context->context.memory());
    return writeSized(charonia_memory_info{0, info.arenaBytes,
                                           info.arenaLowerBound,
                                           info.weightBytes},
                      memory, "charonia_memory_info");
  }));
}

charonia_status charonia_run_timed(charonia_context *context, double *seconds) {
  return report(guarded([&]() -> Status {
    if (!context || !seconds)
      return isNull("the context or the result");
    CHARONIA_ASSIGN_OR_RETURN(*seconds, context->context.runTimed());
    return Status::ok();
  }));
}

charonia_status charonia_profile_create(charonia_context *context,
                                        int repetitions,
                                        charonia_profile **profile) {
  return report(guarded([&]() -> Status {
    if (!context || !profile)
      return isNull("the context or the result");
    auto made = std::make_unique<charonia_profile>();
    CHARONIA_ASSIGN_OR_RETURN(made->steps,
                              context->context.profile(repetitions));
    for (const StepProfile &step : made->steps)
      made->lists.push_back({pointers(step.ops), pointers(step.nodes)});
    *profile = made.release();
    return Status::ok();
  }));
}

void charonia_profile_free(charonia_profile *profile) { delete profile; }

size_t charonia_profile_num_steps(const charonia_profile *profile) {
  return profile ? profile->steps.size() : 0;
}

charonia_status charonia_profile_step(const charonia_profile *profile,
                                      size_t index,
                                      charonia_step_profile *step) {
  return report(guarded([&]() -> Status {
    if (!profile || !step)
      return isNull("the profile or the result");
    if (index >= profile->steps.size())
      return noSuch("step", index);
    const StepProfile &from = profile->steps[index];
    const charonia_profile::Lists &lists = profile->lists[index];
    charonia_step_profile row = {};
    row.name = from.name.c_str();
    row.ops = lists.ops.data(), row.num_ops = lists.ops.size();
    row.nodes = lists.nodes.data(), row.num_nodes = lists.nodes.size();
    row.seconds = from.seconds, row.mean_seconds = from.meanSeconds;
    row.flops = from.flops, row.bytes = from.bytes, row.grid = from.grid;
    row.block_threads = from.blockThreads, row.registers = from.registers;
    row.shared_bytes = from.sharedBytes;
    return writeSized(row, step, "charonia_step_profile");
  }));
}
