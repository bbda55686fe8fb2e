//===- CApi.cpp - The runtime for C and other languages -------------------===//

#include "charonia/charonia.h"
#include "charonia/runtime.h"
#include "runtime/exec/Guard.h"

#include <map>

using namespace charonia;

namespace {

thread_local std::string lastError;

charonia_status report(const Status &status) {
  if (!status.isOk())
    lastError = status.message();
  return static_cast<charonia_status>(status.code());
}

Status isNull(const char *what) {
  return Status(StatusCode::InvalidArgument, std::string(what) + " is null");
}

/// Type and shape of an input or output as C sees them.
struct TensorText {
  std::vector<int64_t> shape;
  std::string text;
};

Result<std::vector<TensorText>> describe(const Signature &signature,
                                         const std::vector<TensorSpec> &specs) {
  std::vector<int64_t> opts;
  for (const Symbol &symbol : signature.symbols)
    opts.push_back(symbol.opt);
  std::vector<TensorText> texts;
  for (const TensorSpec &spec : specs) {
    CHARONIA_ASSIGN_OR_RETURN(auto shape, signature.evaluateShape(spec, opts));
    texts.push_back({std::move(shape), signature.typeString(spec)});
  }
  return texts;
}

} // namespace

struct charonia_engine {
  Engine engine;
  std::vector<TensorText> inputs;
  std::vector<TensorText> outputs;
};

struct charonia_context {
  Context context;
  std::map<std::string, std::vector<int64_t>> outputShapes;
};

namespace {

Status wrap(Result<Engine> engine, charonia_engine **out) {
  if (!engine)
    return engine.status();
  const Signature &signature = engine->signature();
  CHARONIA_ASSIGN_OR_RETURN(auto inputs, describe(signature, signature.inputs));
  CHARONIA_ASSIGN_OR_RETURN(auto outputs,
                            describe(signature, signature.outputs));
  *out = new charonia_engine{*engine, std::move(inputs), std::move(outputs)};
  return Status::ok();
}

charonia_status tensorInfo(const std::vector<TensorSpec> &specs,
                           const std::vector<TensorText> &texts, size_t index,
                           charonia_tensor *info, const char **text) {
  if (index >= specs.size())
    return report(Status(StatusCode::NotFound, "there is no input or output " +
                                                   std::to_string(index)));
  if (info)
    *info = {static_cast<charonia_dtype>(specs[index].dtype), CHARONIA_HOST,
             texts[index].shape.size(), texts[index].shape.data(), nullptr};
  if (text)
    *text = texts[index].text.c_str();
  return CHARONIA_OK;
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
  return report(guarded([&]() -> Status {
    if (!path || !engine)
      return isNull("the path or the result");
    return wrap(Engine::load(std::string(path)), engine);
  }));
}

charonia_status charonia_engine_load_memory(const void *bytes, size_t size,
                                            charonia_engine **engine) {
  return report(guarded([&]() -> Status {
    if (!bytes || !engine)
      return isNull("the memory or the result");
    return wrap(
        Engine::load(std::span(static_cast<const std::byte *>(bytes), size)),
        engine);
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
    return report(isNull("the engine"));
  return tensorInfo(engine->engine.signature().inputs, engine->inputs, index,
                    info, text);
}

charonia_status charonia_output_info(const charonia_engine *engine,
                                     size_t index, charonia_tensor *info,
                                     const char **text) {
  if (!engine)
    return report(isNull("the engine"));
  return tensorInfo(engine->engine.signature().outputs, engine->outputs, index,
                    info, text);
}

charonia_status charonia_context_create(const charonia_engine *engine,
                                        const char *device,
                                        const charonia_context_options *options,
                                        charonia_context **context) {
  return report(guarded([&]() -> Status {
    if (!engine || !device || !context)
      return isNull("the engine, the device or the result");
    CHARONIA_ASSIGN_OR_RETURN(Device parsed, parseDevice(device));
    ContextOptions converted;
    if (options) {
      if (options->size != sizeof(charonia_context_options))
        return Status(StatusCode::InvalidArgument,
                      "charonia_context_options::size must be its sizeof");
      converted.threads = options->threads;
      converted.isa = options->isa ? options->isa : "";
      converted.precision = options->precision ? options->precision : "";
      converted.stream = options->stream;
      converted.cudaGraph = !options->no_cuda_graph;
    }
    CHARONIA_ASSIGN_OR_RETURN(Context made,
                              engine->engine.createContext(parsed, converted));
    *context = new charonia_context{std::move(made), {}};
    return Status::ok();
  }));
}

void charonia_context_free(charonia_context *context) { delete context; }

charonia_status charonia_set_input(charonia_context *context, const char *name,
                                   const charonia_tensor *tensor) {
  return report(guarded([&]() -> Status {
    if (!context || !name || !tensor || (tensor->rank && !tensor->shape))
      return isNull("the context, the name, the tensor or its shape");
    return context->context.setInput(
        name, {static_cast<DType>(tensor->dtype),
               {tensor->shape, tensor->shape + tensor->rank},
               tensor->data,
               static_cast<Memory>(tensor->memory)});
  }));
}

charonia_status charonia_set_output(charonia_context *context, const char *name,
                                    void *data, size_t capacity,
                                    charonia_memory memory) {
  if (!context || !name)
    return report(isNull("the context or the name"));
  return report(context->context.setOutput(name, data, capacity,
                                           static_cast<Memory>(memory)));
}

charonia_status charonia_allocate_output(charonia_context *context,
                                         const char *name,
                                         charonia_memory memory) {
  if (!context || !name)
    return report(isNull("the context or the name"));
  return report(
      context->context.allocateOutput(name, static_cast<Memory>(memory)));
}

charonia_status charonia_run(charonia_context *context) {
  if (!context)
    return report(isNull("the context"));
  return report(context->context.run());
}

charonia_status charonia_run_async(charonia_context *context, void *stream) {
  if (!context)
    return report(isNull("the context"));
  return report(context->context.runAsync(stream));
}

charonia_status charonia_synchronize(charonia_context *context) {
  if (!context)
    return report(isNull("the context"));
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
