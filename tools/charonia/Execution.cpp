#include "tools/charonia/Execution.h"

#include <cmath>
#include <cstring>
#include <random>

namespace charonia::tool {

Result<std::pair<std::string, std::string>> splitNamed(const std::string &text,
                                                       const char *option) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return Status(StatusCode::InvalidArgument, std::string(option) +
                                                   " wants NAME=VALUE, not '" +
                                                   text + "'");
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Result<std::vector<int64_t>> parseShape(const std::string &text) {
  std::vector<int64_t> shape;
  std::string digits = text;
  if (digits.size() >= 2 && digits.front() == '[' && digits.back() == ']')
    digits = digits.substr(1, digits.size() - 2);
  for (size_t at = 0; at < digits.size();) {
    size_t end = std::min(digits.find_first_of("x,", at), digits.size());
    std::string part = digits.substr(at, end - at);
    if (part.empty() || part.size() > 18 ||
        part.find_first_not_of("0123456789 ") != std::string::npos)
      return Status(StatusCode::InvalidArgument,
                    "'" + text + "' is no shape; one is written 1x3x224x224");
    shape.push_back(std::stoll(part));
    at = end + 1;
  }
  return shape;
}

Result<Execution> Execution::open(const ExecutionOptions &options) {
  CHARONIA_ASSIGN_OR_RETURN(Engine engine, Engine::load(options.engine));
  ContextOptions context;
  context.threads = options.threads;
  context.isa = options.isa;
  context.precision = options.precision;
  if (!options.device.empty()) {
    CHARONIA_ASSIGN_OR_RETURN(Device device, parseDevice(options.device));
    CHARONIA_ASSIGN_OR_RETURN(Context made,
                              engine.createContext(device, context));
    return Execution(std::move(engine), std::move(made));
  }
  // The GPU first, if the engine has code for one that is here.
  Status problem(StatusCode::NotFound, options.engine + " holds no program");
  for (DeviceKind kind : {DeviceKind::Cuda, DeviceKind::Cpu})
    for (const ProgramInfo &program : engine.programs()) {
      if (program.device != kind)
        continue;
      Result<Context> made = engine.createContext({kind, 0}, context);
      if (made)
        return Execution(std::move(engine), *std::move(made));
      problem = made.status();
      break;
    }
  return problem;
}

Status Execution::bind(size_t index, Array array) {
  Tensor tensor{array.dtype, array.shape, array.data.get()};
  CHARONIA_RETURN_IF_ERROR(context.setInput(index, tensor));
  inputs[index] = std::move(array);
  bound[index] = true;
  return Status::ok();
}

Status Execution::bindFiles(const std::vector<std::string> &named) {
  for (const std::string &text : named) {
    CHARONIA_ASSIGN_OR_RETURN(auto parts, splitNamed(text, "--input"));
    CHARONIA_ASSIGN_OR_RETURN(size_t index,
                              engine.signature().findInput(parts.first));
    if (bound[index])
      return Status(StatusCode::InvalidArgument,
                    "input '" + parts.first + "' is given twice");
    CHARONIA_ASSIGN_OR_RETURN(
        Array array,
        readNpy(parts.second, engine.signature().inputs[index].dtype));
    CHARONIA_RETURN_IF_ERROR(bind(index, std::move(array)));
  }
  return Status::ok();
}

static uint16_t toHalf(float value, bool bfloat) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (bfloat)
    return bits >> 16;
  // Values here are small multiples of 2^-8, which a half holds exactly.
  if (value == 0)
    return bits >> 16 & 0x8000;
  uint32_t exponent = (bits >> 23 & 255) - 127 + 15;
  return (bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3ff);
}

static void fillRandom(Array &array, uint64_t seed) {
  std::mt19937_64 random(seed);
  unsigned bytes = dtypeBits(array.dtype) / 8;
  for (uint64_t i = 0; i < array.size / bytes; ++i) {
    std::byte *at = array.data.get() + i * bytes;
    float value = (int(random() >> 48 & 1023) - 511) / 256.0f;
    double wide = value;
    uint16_t half = toHalf(value, array.dtype == DType::BFloat16);
    uint64_t integer = random() >> 63;
    switch (array.dtype) {
    case DType::Float32:
      std::memcpy(at, &value, 4);
      break;
    case DType::Float64:
      std::memcpy(at, &wide, 8);
      break;
    case DType::Float16:
    case DType::BFloat16:
      std::memcpy(at, &half, 2);
      break;
    default:
      std::memcpy(at, &integer, bytes);
    }
  }
}

Status Execution::bindRandom(const std::vector<std::string> &shapes,
                             uint64_t seed) {
  const Signature &signature = engine.signature();
  std::map<size_t, std::vector<int64_t>> given;
  for (const std::string &text : shapes) {
    CHARONIA_ASSIGN_OR_RETURN(auto parts, splitNamed(text, "--shape"));
    CHARONIA_ASSIGN_OR_RETURN(size_t index, signature.findInput(parts.first));
    CHARONIA_ASSIGN_OR_RETURN(given[index], parseShape(parts.second));
  }
  std::vector<int64_t> optimum;
  for (const Symbol &symbol : signature.symbols)
    optimum.push_back(symbol.opt);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (bound[i])
      continue;
    const TensorSpec &spec = signature.inputs[i];
    CHARONIA_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                              signature.evaluateShape(spec, optimum));
    if (auto it = given.find(i); it != given.end())
      shape = it->second;
    CHARONIA_ASSIGN_OR_RETURN(Array array, Array::allocate(spec.dtype, shape));
    fillRandom(array, seed * 1000 + i);
    CHARONIA_RETURN_IF_ERROR(bind(i, std::move(array)));
  }
  return Status::ok();
}

} // namespace charonia::tool
