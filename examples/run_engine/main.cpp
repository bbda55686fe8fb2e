// Loads an engine, runs it once on zeros of the shapes it was tuned for, and
// prints what comes out:  run_engine <file.engine> [cpu|cuda|cuda:1]

#include <charonia/runtime.h>

#include <cstdio>
#include <map>

namespace {

int fail(const charonia::Status &status) {
  std::fprintf(stderr, "run_engine: %s\n", status.message().c_str());
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: run_engine <file.engine> [cpu|cuda|cuda:1]\n");
    return 2;
  }
  auto device = charonia::parseDevice(argc > 2 ? argv[2] : "cpu");
  if (!device)
    return fail(device.status());
  auto engine = charonia::Engine::load(argv[1]);
  if (!engine)
    return fail(engine.status());
  auto context = engine->createContext(*device);
  if (!context)
    return fail(context.status());
  std::printf("%s\n", context->description().c_str());

  // Shapes are expressions of the engine's shape symbols, here each at its opt.
  const charonia::Signature &signature = engine->signature();
  std::vector<int64_t> symbols;
  for (const charonia::Symbol &symbol : signature.symbols)
    symbols.push_back(symbol.opt);

  std::map<std::string, std::vector<std::byte>> memory;
  for (const charonia::TensorSpec &input : signature.inputs) {
    auto shape = signature.evaluateShape(input, symbols);
    if (!shape)
      return fail(shape.status());
    auto bytes = charonia::tensorBytes(input.dtype, *shape);
    if (!bytes)
      return fail(bytes.status());
    auto &data = memory[input.name];
    data.resize(*bytes);
    charonia::Status set =
        context->setInput(input.name, {input.dtype, *shape, data.data()});
    if (!set)
      return fail(set);
    std::printf("input  %s: %s, here %s\n", input.name.c_str(),
                signature.typeString(input).c_str(),
                charonia::shapeString(*shape).c_str());
  }
  if (charonia::Status ran = context->run(); !ran)
    return fail(ran);
  for (const charonia::TensorSpec &output : signature.outputs) {
    auto tensor = context->output(output.name);
    if (!tensor)
      return fail(tensor.status());
    std::printf("output %s: %s", output.name.c_str(),
                charonia::shapeString(tensor->shape).c_str());
    if (tensor->dtype == charonia::DType::Float32) {
      auto bytes = charonia::tensorBytes(tensor->dtype, tensor->shape);
      auto *values = static_cast<const float *>(tensor->data);
      for (size_t i = 0; bytes && i < *bytes / 4 && i < 8; ++i)
        std::printf(" %g", values[i]);
    }
    std::printf("\n");
  }
  return 0;
}
