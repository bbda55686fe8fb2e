// Kernels that begin while the one before them ends, on a real GPU: no run may
// see what an earlier kernel has not written yet, or write what it still needs.
// The engines that the environment variable CHARONIA_GPU_ENGINES lists (with
// ':' between them), of sm_90 or later. Their PTX is changed: behind its wait
// each kernel lets the next one start at once, earlier than the compiler would,
// and each warp sleeps for a time of its own, so that kernels end late and
// raggedly, those of a wave beside one another; the arena is filled with NaN at
// the start of each run.
#include "charonia/runtime.h"
#include "runtime/engine/Reader.h"
#include "runtime/engine/Writer.h"

#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

using namespace charonia;

namespace {

constexpr char waiting[] = "griddepcontrol.wait;";
constexpr char fencing[] = "fence.acq_rel.gpu;";
// Up to 8 microseconds.
constexpr char sleeping[] = "\ngriddepcontrol.launch_dependents;\n{\n"
                            ".reg .u32 slept, block;\n"
                            "mov.u32 slept, %clock;\n"
                            "mov.u32 block, %ctaid.x;\n"
                            "mad.lo.u32 slept, block, 0x9E3779B1, slept;\n"
                            "mul.lo.u32 slept, slept, 0x85EBCA6B;\n"
                            "shr.u32 slept, slept, 20;\n"
                            "nanosleep.u32 slept;\n"
                            "}\n";

using Inputs = std::vector<std::vector<std::byte>>;

size_t sizeOf(DType type) { return dtypeBits(type) / 8; }

std::vector<std::string> givenEngines() {
  std::vector<std::string> paths;
  if (const char *given = std::getenv("CHARONIA_GPU_ENGINES")) {
    std::istringstream list(given);
    for (std::string path; std::getline(list, path, ':');)
      paths.push_back(path);
  }
  return paths;
}

class Overtaking : public ::testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    auto opened = engine::Reader::open(GetParam());
    ASSERT_TRUE(opened) << opened.status().message();
    reader = *opened;
    const Signature &signature = reader->manifest().signature;
    std::vector<int64_t> symbols;
    for (const Symbol &symbol : signature.symbols)
      symbols.push_back(symbol.opt);
    for (const TensorSpec &input : signature.inputs)
      shapes.push_back(*signature.evaluateShape(input, symbols));
  }

  /// The engine with PTX alone, poisoned and delayed.
  std::vector<std::byte> change(uint64_t arenaBytes, bool waits) {
    engine::Manifest manifest = reader->manifest();
    engine::Writer writer;
    for (const engine::SectionInfo &section : reader->sections())
      writer.addSection(section.kind, section.name,
                        reader->section(&section - reader->sections().data()));
    engine::CodeSection code(writer.nextSection());
    kernels = 0;
    for (engine::Program &program : manifest.programs)
      if (program.device == DeviceKind::Cuda) {
        poison(program, arenaBytes);
        for (engine::Variant &variant : program.variants)
          for (engine::CodeModule &module : variant.modules)
            delay(module, code, waits);
      }
    writer.addSection(engine::SectionKind::Code, "delayed", code.bytes());
    std::vector<std::byte> bytes;
    Status written = writer.write(manifest, bytes);
    EXPECT_TRUE(written.isOk()) << written.message();
    return bytes;
  }

  static std::string fill(std::string text, bool waits) {
    size_t at = text.find(waiting);
    if (at == std::string::npos)
      return text;
    // Of a wave it sleeps where it begins to read, and waits at its end.
    size_t fence = text.find(fencing);
    text.insert(fence < at ? fence + sizeof(fencing) - 1
                           : at + sizeof(waiting) - 1,
                sleeping);
    while (!waits && (at = text.find(waiting)) != std::string::npos)
      text.erase(at, sizeof(waiting) - 1);
    return text;
  }

  void delay(engine::CodeModule &module, engine::CodeSection &code,
             bool waits) {
    std::span<const std::byte> bytes = reader->range(module.ptx);
    std::string text(reinterpret_cast<const char *>(bytes.data()),
                     bytes.size());
    kernels += text.find(waiting) != std::string::npos;
    module.ptx = code.addText(fill(std::move(text), waits));
    module.cubin = {};
  }

  /// One more step in front, which writes NaN all over the arena.
  static void poison(engine::Program &program, uint64_t arenaBytes) {
    for (engine::Buffer &buffer : program.buffers) {
      if (buffer.kind != engine::Buffer::Kind::Input &&
          buffer.kind != engine::Buffer::Kind::Weight)
        ++buffer.firstStep;
      ++buffer.lastStep;
    }
    engine::Buffer all;
    all.name = "poison";
    all.size = static_cast<int64_t>(arenaBytes);
    program.buffers.push_back(all);
    engine::Step fill;
    fill.kind = engine::Step::Kind::Fill;
    fill.args = {{uint32_t(program.buffers.size() - 1), 0}};
    fill.bytes = static_cast<int64_t>(arenaBytes);
    fill.pattern = UINT32_MAX;
    fill.patternSize = 4;
    program.steps.insert(program.steps.begin(), fill);
  }

  Inputs randomInputs(unsigned seed) const {
    std::mt19937 random(seed);
    Inputs inputs;
    const Signature &signature = reader->manifest().signature;
    for (size_t i = 0; i < shapes.size(); ++i) {
      size_t count = 1;
      for (int64_t extent : shapes[i])
        count *= extent;
      DType type = signature.inputs[i].dtype;
      std::vector<std::byte> bytes(count * sizeOf(type));
      for (size_t e = 0; e < count; ++e) {
        float number = std::normal_distribution<float>(0, 1)(random);
        int64_t id = random() % 2;
        if (type == DType::Float32)
          std::memcpy(bytes.data() + e * 4, &number, 4);
        else // Ids and masks.
          std::memcpy(bytes.data() + e * sizeOf(type), &id, sizeOf(type));
      }
      inputs.push_back(std::move(bytes));
    }
    return inputs;
  }

  void bind(Context &context, const Inputs &inputs) const {
    const Signature &signature = reader->manifest().signature;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Status set = context.setInput(
          i, {signature.inputs[i].dtype, shapes[i], inputs[i].data()});
      ASSERT_TRUE(set.isOk()) << set.message();
    }
  }

  std::vector<std::byte> run(Context &context) const {
    Status ran = context.run();
    EXPECT_TRUE(ran.isOk()) << ran.message();
    std::vector<std::byte> all;
    for (size_t o = 0; o < reader->manifest().signature.outputs.size(); ++o) {
      Tensor tensor = *context.output(o);
      size_t bytes = sizeOf(tensor.dtype);
      for (int64_t extent : tensor.shape)
        bytes *= extent;
      auto *data = static_cast<const std::byte *>(tensor.data);
      all.insert(all.end(), data, data + bytes);
    }
    return all;
  }

  static Context contextOf(const Engine &engine, bool overlap) {
    ContextOptions options;
    options.overlapKernels = overlap;
    Result<Context> made = engine.createContext({DeviceKind::Cuda}, options);
    EXPECT_TRUE(made) << made.status().message();
    return std::move(*made);
  }

  static Engine load(std::span<const std::byte> bytes) {
    Result<Engine> loaded = Engine::load(bytes);
    EXPECT_TRUE(loaded) << loaded.status().message();
    return *loaded;
  }

  /// Bytes of the arena for these shapes.
  uint64_t arenaBytes(const Inputs &inputs) const {
    Result<Engine> loaded = Engine::load(GetParam());
    EXPECT_TRUE(loaded) << loaded.status().message();
    Context context = contextOf(*loaded, false);
    bind(context, inputs);
    return (context.memory()->arenaBytes + 3) / 4 * 4;
  }

  std::shared_ptr<const engine::Reader> reader;
  std::vector<std::vector<int64_t>> shapes;
  unsigned kernels = 0; ///< That wait.
};

TEST_P(Overtaking, NoRunSeesAnother) {
  const Inputs inputs[2] = {randomInputs(1), randomInputs(2)};
  Engine engine = load(change(arenaBytes(inputs[0]), /*waits=*/true));
  ASSERT_GT(kernels, 1u);
  std::vector<std::byte> expected[2];
  {
    Context apart = contextOf(engine, false);
    for (int i : {0, 1}) {
      bind(apart, inputs[i]);
      expected[i] = run(apart);
    }
    ASSERT_NE(expected[0], expected[1]);
  }
  const char *given = std::getenv("CHARONIA_GPU_RUNS");
  int runs = given ? std::atoi(given) : 10'000, wrong = 0;
  Context context = contextOf(engine, true);
  std::mt19937 random(3);
  for (int i = 0; i < runs; ++i) {
    int which = random() % 2;
    bind(context, inputs[which]);
    wrong += run(context) != expected[which];
  }
  EXPECT_EQ(wrong, 0) << "of " << runs << " runs, " << kernels << " kernels";
}

/// What the other test would miss, it would miss here too.
TEST_P(Overtaking, WithoutTheWaitsRunsDiffer) {
  const Inputs inputs = randomInputs(1);
  uint64_t arena = arenaBytes(inputs);
  Engine right = load(change(arena, /*waits=*/true));
  Engine broken = load(change(arena, /*waits=*/false));
  Context apart = contextOf(right, false), racing = contextOf(broken, true);
  bind(apart, inputs);
  std::vector<std::byte> expected = run(apart);
  bind(racing, inputs);
  int wrong = 0;
  for (int i = 0; i < 100; ++i)
    wrong += run(racing) != expected;
  EXPECT_GT(wrong, 0);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Overtaking);
INSTANTIATE_TEST_SUITE_P(Given, Overtaking, ::testing::ValuesIn(givenEngines()),
                         [](const auto &info) {
                           return "Engine" + std::to_string(info.index);
                         });

} // namespace
