// guarded_run ENGINE ISA OUTDIR {NAME TYPE SHAPE FILE}: runs once on a CPU.
// Each input and output ends in front of a page that nobody may touch, up to
// the runtime's alignment, and what is around it must stay as it is. SHAPE:
// 4x5, or - of a scalar. Writes OUTDIR/NAME for each output and says its name
// and shape.
#include "charonia/runtime.h"
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace charonia;

namespace {

/// Memory for `size` bytes between two pages without access.
class Guarded {
public:
  explicit Guarded(size_t size) : size(size) {
    constexpr size_t alignment = 64;
    size_t aligned = (size + alignment - 1) / alignment * alignment;
    body = (aligned / page + 1) * page;
    void *all = mmap(nullptr, body + 2 * page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
      abort();
    begin = static_cast<char *>(all) + page;
    mprotect(begin, body, PROT_READ | PROT_WRITE);
    memset(begin, pattern, body);
    data = begin + body - aligned;
  }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;
  ~Guarded() { munmap(begin - page, body + 2 * page); }

  bool intact() const {
    for (const char *p = begin; p != begin + body; ++p)
      if ((p < data || p >= data + size) && *p != pattern)
        return false;
    return true;
  }

  char *data;

private:
  static constexpr char pattern = 0x7b;
  const size_t page = sysconf(_SC_PAGESIZE), size;
  size_t body;
  char *begin;
};

int fail(const std::string &what) {
  fprintf(stderr, "error: %s\n", what.c_str());
  return 1;
}

} // namespace

int main(int count, char **arguments) {
  if (count < 4 || count % 4 != 0)
    return fail("guarded_run ENGINE ISA OUTDIR {NAME TYPE SHAPE FILE}");
  auto engine = Engine::load(arguments[1]);
  if (!engine)
    return fail(std::string(engine.status().message()));
  ContextOptions options;
  options.isa = arguments[2];
  options.threads = 1;
  auto context = engine->createContext({DeviceKind::Cpu}, options);
  if (!context)
    return fail(std::string(context.status().message()));
  std::vector<std::unique_ptr<Guarded>> buffers;
  for (int i = 4; i < count; i += 4) {
    std::vector<int64_t> shape;
    std::istringstream extents(arguments[i + 2]);
    for (std::string extent; getline(extents, extent, 'x');)
      if (extent != "-")
        shape.push_back(std::stoll(extent));
    std::ifstream file(arguments[i + 3], std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    auto type = parseDType(arguments[i + 1]);
    if (!type)
      return fail("no such type");
    buffers.push_back(std::make_unique<Guarded>(bytes.size()));
    memcpy(buffers.back()->data, bytes.data(), bytes.size());
    if (auto set = context->setInput(arguments[i],
                                     {*type, shape, buffers.back()->data});
        !set)
      return fail(std::string(set.message()));
  }
  auto signature = context->signature();
  std::vector<std::pair<Guarded *, size_t>> results;
  for (const auto &output : signature.outputs) {
    auto shape = context->outputShape(output.name);
    if (!shape)
      return fail(std::string(shape.status().message()));
    size_t bytes = *tensorBytes(output.dtype, *shape);
    buffers.push_back(std::make_unique<Guarded>(bytes));
    results.push_back({buffers.back().get(), bytes});
    if (auto set = context->setOutput(output.name, buffers.back()->data, bytes);
        !set)
      return fail(std::string(set.message()));
    printf("%s", std::string(output.name).c_str());
    for (int64_t extent : *shape)
      printf(" %lld", (long long)extent);
    printf("\n");
  }
  if (auto run = context->run(); !run)
    return fail(std::string(run.message()));
  for (const auto &buffer : buffers)
    if (!buffer->intact())
      return fail("something was written around an input or output");
  for (size_t i = 0; i < results.size(); ++i)
    std::ofstream(std::string(arguments[3]) + "/" +
                      std::string(signature.outputs[i].name),
                  std::ios::binary)
        .write(results[i].first->data, results[i].second);
  return 0;
}
