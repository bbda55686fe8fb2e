// An engine on a device with its inputs bound: what run, bench and compare
// share.
#ifndef CHARONIA_TOOLS_CHARONIA_EXECUTION_H
#define CHARONIA_TOOLS_CHARONIA_EXECUTION_H

#include "charonia/runtime.h"
#include "tools/charonia/Commands.h"
#include "tools/charonia/Npy.h"

namespace charonia::tool {

/// "1x3x224x224" or "[1,3,224,224]".
Result<std::vector<int64_t>> parseShape(const std::string &text);

/// The value of an option that is NAME=VALUE, NAME an input of `signature`, or
/// VALUE alone where there is one input.
struct NamedInput {
  size_t index;
  std::string value;
};
Result<NamedInput> splitNamed(const std::string &text, const char *option,
                              const Signature &signature);

/// One shape per input: the given ones (--shape), the sizes that they and
/// `known` shapes (by input; empty: not known) determine, and the symbols'
/// optimum elsewhere. All are inside the engine's ranges.
Result<std::vector<std::vector<int64_t>>>
chooseShapes(const Signature &signature,
             const std::vector<std::string> &options,
             std::vector<std::optional<std::vector<int64_t>>> known);

class Execution {
public:
  static Result<Execution> open(const ExecutionOptions &options);

  Engine &getEngine() { return engine; }
  Context &getContext() { return context; }
  /// The arrays that are bound, by input.
  const std::vector<Array> &getInputs() const { return inputs; }
  /// The precision of the program that runs.
  std::string precision(const ExecutionOptions &options) const;
  /// CPU threads that run kernels; 0 on a GPU.
  unsigned threads() const { return context.threads(); }

  /// Binds the inputs that files give: values of --input.
  Status bindFiles(const std::vector<std::string> &named);
  /// Binds the input `index` to what the file `path` holds.
  Status bindFile(size_t index, const std::string &path);
  /// Binds seeded random values to the inputs that nothing is bound to.
  Status bindRandom(const std::vector<std::string> &shapes, uint64_t seed);
  /// "image float32 16x1x8x8, mask bool 16": the inputs with random values.
  std::string describeRandom() const;

private:
  enum class Source { None, File, Random };
  Execution(Engine engine, Context context)
      : engine(std::move(engine)), context(std::move(context)),
        inputs(this->engine.signature().inputs.size()), bound(inputs.size()) {}
  static Result<Execution> choose(Engine engine,
                                  const ExecutionOptions &options,
                                  const ContextOptions &wanted);
  Status bind(size_t index, Array array, Source source);

  Engine engine;
  Context context;
  std::vector<Array> inputs;
  std::vector<Source> bound;
};

} // namespace charonia::tool

#endif
