#include "tools/charonia/Execution.h"
#include "tools/charonia/Console.h"
#include "tools/charonia/Elements.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sys/stat.h>

namespace charonia::tool {
namespace {

Status badUsage(const char *option, const std::string &text,
                const std::string &what) {
  return Status(StatusCode::InvalidArgument,
                std::string(option) + " " + text + ": " + what);
}

std::string listInputs(const Signature &signature) {
  std::string text;
  for (const TensorSpec &spec : signature.inputs)
    text += (text.empty() ? "'" : ", '") + spec.name + "'";
  return text;
}

Status hostCodeRefused(const std::string &why) {
  return Status(StatusCode::FailedPrecondition,
                "--no-host-code lets nothing run on the CPU, but " + why);
}

bool isFile(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

} // namespace

Result<NamedInput> splitNamed(const std::string &text, const char *option,
                              const Signature &signature) {
  // Names may hold '=': the longest that fits is meant.
  const TensorSpec *found = nullptr;
  for (const TensorSpec &spec : signature.inputs)
    if (text.starts_with(spec.name + "=") &&
        (!found || spec.name.size() > found->name.size()))
      found = &spec;
  if (found) {
    std::string value = text.substr(found->name.size() + 1);
    if (value.empty())
      return badUsage(option, text, "nothing follows the '='");
    return NamedInput{size_t(found - signature.inputs.data()), value};
  }
  for (const TensorSpec &spec : signature.inputs)
    if (text == spec.name && !isFile(text))
      return badUsage(option, text,
                      "names an input without a value; write " + text +
                          "=VALUE");
  size_t equals = text.find('=');
  if (signature.inputs.size() == 1 &&
      (equals == std::string::npos || isFile(text)))
    return NamedInput{0, text};
  if (equals == std::string::npos)
    return badUsage(option, text,
                    signature.inputs.empty()
                        ? "the engine has no inputs"
                        : "write NAME=VALUE; the engine's inputs are " +
                              listInputs(signature));
  return signature.findInput(text.substr(0, equals)).status();
}

/// The number that `text` is, blanks around it aside.
static std::optional<int64_t> parseExtent(std::string_view text) {
  size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos)
    return std::nullopt;
  text = text.substr(first, text.find_last_not_of(' ') + 1 - first);
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  // Not as large that sums of a few of them overflow.
  bool isNumber = error == std::errc() && end == text.data() + text.size() &&
                  text.front() != '-' && value < int64_t(1) << 60;
  return isNumber ? std::optional(value) : std::nullopt;
}

Result<std::vector<int64_t>> parseShape(const std::string &text) {
  std::vector<int64_t> shape;
  std::string_view rest = text;
  if (rest.size() >= 2 && rest.front() == '[' && rest.back() == ']')
    rest = rest.substr(1, rest.size() - 2);
  for (bool more = !rest.empty(); more;) {
    size_t end = std::min(rest.find_first_of("x,"), rest.size());
    std::optional<int64_t> extent = parseExtent(rest.substr(0, end));
    if (!extent)
      return Status(StatusCode::InvalidArgument,
                    "'" + text + "' is no shape; one is written 1x3x224x224");
    shape.push_back(*extent);
    more = end < rest.size();
    rest.remove_prefix(end + more);
  }
  return shape;
}

Result<std::vector<std::vector<int64_t>>>
chooseShapes(const Signature &signature,
             const std::vector<std::string> &options,
             std::vector<std::optional<std::vector<int64_t>>> known) {
  for (const std::string &text : options) {
    CHARONIA_ASSIGN_OR_RETURN(NamedInput named,
                              splitNamed(text, "--shape", signature));
    if (known[named.index])
      return badUsage("--shape", text,
                      "the shape of '" + signature.inputs[named.index].name +
                          "' is given already");
    CHARONIA_ASSIGN_OR_RETURN(known[named.index], parseShape(named.value));
  }
  std::vector<int64_t> values = signature.completeSymbols(known);
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i < known.size(); ++i) {
    if (!known[i]) {
      CHARONIA_ASSIGN_OR_RETURN(
          known[i], signature.evaluateShape(signature.inputs[i], values));
    }
    shapes.push_back(*known[i]);
  }
  CHARONIA_RETURN_IF_ERROR(signature.solveSymbols(shapes).status());
  return shapes;
}

Result<Execution> Execution::open(const ExecutionOptions &options) {
  LoadOptions load;
  load.verifyWeights = !options.load.noVerify;
  load.allowHostCode = !options.load.noHostCode;
  load.digest = options.load.digest;
  CHARONIA_ASSIGN_OR_RETURN(Engine engine, Engine::load(options.engine, load));
  ContextOptions wanted;
  wanted.threads = options.threads;
  wanted.isa = options.isa;
  wanted.precision = options.precision;
  wanted.overlapKernels = !options.noOverlap;
  if (options.device == "auto")
    return choose(std::move(engine), options, wanted);
  CHARONIA_ASSIGN_OR_RETURN(Device device, parseDevice(options.device));
  if (device.kind == DeviceKind::Cpu && options.load.noHostCode)
    return hostCodeRefused("--device names it");
  CHARONIA_ASSIGN_OR_RETURN(Context made, engine.createContext(device, wanted));
  return Execution(std::move(engine), std::move(made));
}

/// The GPU if the engine has a program for one that is here, else the CPU; says
/// which and why.
Result<Execution> Execution::choose(Engine engine,
                                    const ExecutionOptions &options,
                                    const ContextOptions &wanted) {
  bool holds[2] = {};
  for (const ProgramInfo &program : engine.programs())
    holds[program.device == DeviceKind::Cuda] = true;
  std::string why = "the engine has no program for a GPU";
  if (holds[1]) {
    Result<Context> made = engine.createContext({DeviceKind::Cuda, 0}, wanted);
    if (made) {
      note("running on " + made->description() +
           (holds[0] ? ", not on the CPU: the engine has programs for both"
                     : ": the engine has no program for a CPU"));
      return Execution(std::move(engine), *std::move(made));
    }
    // Anything but the lack of a fitting device is a failure of this one.
    StatusCode code = made.status().code();
    if (!holds[0])
      return made.status();
    if (code != StatusCode::Unavailable && code != StatusCode::NotFound)
      return Status(code, made.status().message() +
                              "; --device cpu runs the program for CPUs");
    why = "the engine's program for GPUs cannot run here: " +
          made.status().message();
  }
  if (options.load.noHostCode)
    return hostCodeRefused(why);
  Result<Context> made = engine.createContext({DeviceKind::Cpu, 0}, wanted);
  if (!made)
    return made.status();
  note("running on the CPU, " + made->description() + ": " + why);
  return Execution(std::move(engine), *std::move(made));
}

std::string Execution::precision(const ExecutionOptions &options) const {
  for (const ProgramInfo &program : engine.programs())
    if (program.device == context.device().kind &&
        (options.precision.empty() || program.precision == options.precision))
      return program.precision;
  return options.precision;
}

Status Execution::bind(size_t index, Array array, Source source) {
  Tensor tensor{array.dtype, array.shape, array.data.get()};
  CHARONIA_RETURN_IF_ERROR(context.setInput(index, tensor));
  inputs[index] = std::move(array);
  bound[index] = source;
  return Status::ok();
}

Status Execution::bindFiles(const std::vector<std::string> &named) {
  const Signature &signature = engine.signature();
  for (const std::string &text : named) {
    CHARONIA_ASSIGN_OR_RETURN(NamedInput input,
                              splitNamed(text, "--input", signature));
    CHARONIA_RETURN_IF_ERROR(bindFile(input.index, input.value));
  }
  return Status::ok();
}

Status Execution::bindFile(size_t index, const std::string &path) {
  const TensorSpec &spec = engine.signature().inputs[index];
  if (bound[index] != Source::None)
    return Status(StatusCode::InvalidArgument,
                  "input '" + spec.name + "' is given twice");
  CHARONIA_ASSIGN_OR_RETURN(Array array, readNpy(path, spec.dtype));
  return bind(index, std::move(array), Source::File);
}

Status Execution::bindRandom(const std::vector<std::string> &shapes,
                             uint64_t seed) {
  const Signature &signature = engine.signature();
  std::vector<std::optional<std::vector<int64_t>>> known(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (bound[i] != Source::None)
      known[i] = inputs[i].shape;
  // Before anything is allocated: shapes may be out of range.
  CHARONIA_ASSIGN_OR_RETURN(auto chosen,
                            chooseShapes(signature, shapes, std::move(known)));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (bound[i] != Source::None)
      continue;
    CHARONIA_ASSIGN_OR_RETURN(
        Array array,
        Array::allocate(signature.inputs[i].dtype, std::move(chosen[i])));
    fillRandom(array, seed * 1000 + i);
    CHARONIA_RETURN_IF_ERROR(bind(i, std::move(array), Source::Random));
  }
  return Status::ok();
}

std::string Execution::describeRandom() const {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (bound[i] == Source::Random)
      text += (text.empty() ? "" : ", ") +
              printable(engine.signature().inputs[i].name) + " " +
              std::string(dtypeName(inputs[i].dtype)) + " " +
              shapeString(inputs[i].shape);
  return text;
}

} // namespace charonia::tool
