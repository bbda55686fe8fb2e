// Prints what loading an engine for the CPU takes, with the weights' checksum
// compared and without:  load_bench <file.engine> [rounds]
// Times of this thread's processor: other work on the machine does not count.

#include "charonia/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <time.h>

using namespace charonia;

namespace {

double processorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

struct Times {
  std::vector<double> load, context, run;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2] * 1e3;
}

/// One load, context and first run on zeros.
Status once(const char *path, const LoadOptions &options, Times &times) {
  double start = processorSeconds();
  CHARONIA_ASSIGN_OR_RETURN(Engine engine, Engine::load(path, options));
  double loaded = processorSeconds();
  ContextOptions one;
  one.threads = 1;
  CHARONIA_ASSIGN_OR_RETURN(Context context, engine.createContext({}, one));
  double made = processorSeconds();
  const Signature &signature = engine.signature();
  std::vector<int64_t> symbols;
  for (const Symbol &symbol : signature.symbols)
    symbols.push_back(symbol.opt);
  std::vector<std::vector<std::byte>> memory;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const TensorSpec &spec = signature.inputs[i];
    CHARONIA_ASSIGN_OR_RETURN(auto shape,
                              signature.evaluateShape(spec, symbols));
    CHARONIA_ASSIGN_OR_RETURN(uint64_t bytes, tensorBytes(spec.dtype, shape));
    memory.emplace_back(bytes);
    CHARONIA_RETURN_IF_ERROR(
        context.setInput(i, {spec.dtype, shape, memory.back().data()}));
  }
  double bound = processorSeconds();
  CHARONIA_RETURN_IF_ERROR(context.run());
  times.load.push_back(loaded - start);
  times.context.push_back(made - loaded);
  times.run.push_back(processorSeconds() - bound);
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: load_bench <file.engine> [rounds]\n");
    return 2;
  }
  int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 11;
  auto engine = Engine::load(argv[1]);
  auto digest = engine ? engine->digest() : engine.status();
  if (!digest) {
    std::fprintf(stderr, "%s\n", digest.status().message().c_str());
    return 1;
  }
  LoadOptions verified, trusted, pinned;
  trusted.verifyWeights = false;
  pinned.digest = *digest;
  struct {
    const char *name;
    LoadOptions options;
    Times times;
  } cases[] = {{"weights compared", verified, {}},
               {"not compared", trusted, {}},
               {"pinned by digest", pinned, {}}};
  for (int round = 0; round < rounds; ++round)
    for (auto &c : cases)
      if (Status status = once(argv[1], c.options, c.times); !status) {
        std::fprintf(stderr, "%s\n", status.message().c_str());
        return 1;
      }
  for (auto &c : cases)
    std::printf("%-17s load %8.3f ms  context %8.3f ms  first run %8.3f ms\n",
                c.name, median(c.times.load), median(c.times.context),
                median(c.times.run));
  return 0;
}
