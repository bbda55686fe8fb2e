// An engine on a device with its inputs bound: what run, bench and compare
// share.
#ifndef CHARONIA_TOOLS_CHARONIA_EXECUTION_H
#define CHARONIA_TOOLS_CHARONIA_EXECUTION_H

#include "charonia/runtime.h"
#include "tools/charonia/Commands.h"
#include "tools/charonia/Npy.h"

#include <map>

namespace charonia::tool {

/// Splits NAME=VALUE at the first '='; the error names `option`.
Result<std::pair<std::string, std::string>> splitNamed(const std::string &text,
                                                       const char *option);

/// "1x3x224x224" or "[1,3,224,224]".
Result<std::vector<int64_t>> parseShape(const std::string &text);

class Execution {
public:
  static Result<Execution> open(const ExecutionOptions &options);

  Engine &getEngine() { return engine; }
  Context &getContext() { return context; }
  /// The arrays that are bound, by input.
  const std::vector<Array> &getInputs() const { return inputs; }

  /// Binds the inputs that files give.
  Status bindFiles(const std::vector<std::string> &named);
  /// Binds seeded random values to the inputs that nothing is bound to: of the
  /// given shapes (NAME=1x3), else of the optimum. Integers are 0 or 1.
  Status bindRandom(const std::vector<std::string> &shapes, uint64_t seed);

private:
  Execution(Engine engine, Context context)
      : engine(std::move(engine)), context(std::move(context)),
        inputs(this->engine.signature().inputs.size()), bound(inputs.size()) {}
  Status bind(size_t index, Array array);

  Engine engine;
  Context context;
  std::vector<Array> inputs;
  std::vector<bool> bound;
};

} // namespace charonia::tool

#endif
