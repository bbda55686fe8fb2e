// The C interface's own part: statuses, messages, null pointers. What it does
// with an engine is tested by examples/run_engine.

#include "CpuEngine.h"

#include "charonia/charonia.h"
#include "runtime/engine/Sha256.h"

#include <cstring>

using namespace charonia;
using namespace charonia::engine;
using namespace charonia::test;

namespace {

TEST(CApi, EnumeratorsAreTheSame) {
  EXPECT_EQ(int(CHARONIA_INTERNAL), int(StatusCode::Internal));
  EXPECT_EQ(int(CHARONIA_CORRUPT), int(StatusCode::Corrupt));
  EXPECT_EQ(int(CHARONIA_UINT4), int(DType::UInt4));
  EXPECT_EQ(int(CHARONIA_BFLOAT16), int(DType::BFloat16));
  EXPECT_EQ(int(CHARONIA_DEVICE), int(Memory::Device));
  EXPECT_EQ(int(CHARONIA_EQUAL), int(Constraint::Relation::Equal));
  EXPECT_EQ(int(CHARONIA_DIVIDES), int(Constraint::Relation::Divides));
  EXPECT_EQ(int(CHARONIA_AT_LEAST), int(Constraint::Relation::AtLeast));
  EXPECT_EQ(int(CHARONIA_DIFFERS), int(Constraint::Relation::Differs));
  EXPECT_EQ(charonia_dtype_bits(CHARONIA_FLOAT16), 16u);
  EXPECT_EQ(charonia_version(), version());
}

TEST(CApi, Errors) {
  charonia_engine *engine = nullptr;
  EXPECT_EQ(charonia_engine_load("/no/such.engine", &engine),
            CHARONIA_NOT_FOUND);
  EXPECT_STREQ(charonia_last_error(),
               "cannot open the engine '/no/such.engine': "
               "No such file or directory");
  EXPECT_EQ(charonia_engine_load(nullptr, &engine), CHARONIA_INVALID_ARGUMENT);
  EXPECT_EQ(charonia_engine_load_memory("x", 1, &engine), CHARONIA_CORRUPT);
  EXPECT_EQ(engine, nullptr);
  EXPECT_EQ(charonia_num_inputs(nullptr), 0u);
  EXPECT_EQ(charonia_run(nullptr), CHARONIA_INVALID_ARGUMENT);
  EXPECT_EQ(charonia_synchronize(nullptr), CHARONIA_INVALID_ARGUMENT);
  charonia_engine_free(nullptr);
  charonia_context_free(nullptr);
}

TEST(CApi, Engine) {
  TempDir dir;
  auto code = randomBytes(600, 1), weights = randomBytes(5000, 2);
  Writer w;
  w.addSection(SectionKind::Code, "code", code);
  w.addSection(SectionKind::Weights, "weights", weights);
  ASSERT_TRUE(w.write(sampleManifest(), dir / "a.engine").isOk());
  charonia_engine *engine = nullptr;
  ASSERT_EQ(charonia_engine_load((dir / "a.engine").c_str(), &engine),
            CHARONIA_OK);
  EXPECT_EQ(charonia_num_outputs(engine), 1u);
  EXPECT_STREQ(charonia_input_name(engine, 0), "x");
  EXPECT_EQ(charonia_input_name(engine, 1), nullptr);
  charonia_tensor info;
  const char *text;
  ASSERT_EQ(charonia_output_info(engine, 0, &info, &text), CHARONIA_OK);
  EXPECT_EQ(info.dtype, CHARONIA_FLOAT32);
  EXPECT_EQ(info.rank, 2u);
  EXPECT_EQ(info.shape[0], 4); // The symbol's opt.
  EXPECT_STREQ(text, "float32 [batch, 16]");
  EXPECT_EQ(charonia_input_info(engine, 3, &info, &text), CHARONIA_NOT_FOUND);

  charonia_context *context = nullptr;
  EXPECT_EQ(charonia_context_create(engine, "gpu", nullptr, &context),
            CHARONIA_INVALID_ARGUMENT);
  EXPECT_STREQ(charonia_last_error(),
               "unknown device 'gpu'; write cpu, cuda or cuda:<number>");
  charonia_context_options options = {};
  EXPECT_EQ(charonia_context_create(engine, "cpu", &options, &context),
            CHARONIA_INVALID_ARGUMENT);
  options.size = sizeof(options);
  options.isa = "mmx";
  EXPECT_EQ(charonia_context_create(engine, "cpu", &options, &context),
            CHARONIA_INVALID_ARGUMENT);
  options.isa = nullptr;
  options.threads = 1;
  ASSERT_EQ(charonia_context_create(engine, "cpu", &options, &context),
            CHARONIA_OK);
  charonia_engine_free(engine); // The context lives on.
  const int64_t shape[] = {4};
  info.rank = 1;
  info.shape = shape;
  EXPECT_EQ(charonia_set_input(context, "x", &info), CHARONIA_INVALID_ARGUMENT);
  EXPECT_STREQ(charonia_last_error(),
               "the input 'x' takes float32 [batch, 16], "
               "not a tensor of rank 1");
  EXPECT_EQ(charonia_run(context), CHARONIA_FAILED_PRECONDITION);
  EXPECT_EQ(charonia_output(context, "y", &info), CHARONIA_FAILED_PRECONDITION);
  charonia_context_free(context);
}

TEST(CApi, Constraints) {
  TempDir dir;
  auto code = randomBytes(600, 1), weights = randomBytes(5000, 2);
  Writer w;
  w.addSection(SectionKind::Code, "code", code);
  w.addSection(SectionKind::Weights, "weights", weights);
  Manifest manifest = sampleManifest();
  manifest.signature.constraints.push_back(
      {Constraint::Relation::AtLeast, 512, ShapeExpr::symbol(0), ""});
  ASSERT_TRUE(w.write(manifest, dir / "a.engine").isOk());
  charonia_engine *engine = nullptr;
  ASSERT_EQ(charonia_engine_load((dir / "a.engine").c_str(), &engine),
            CHARONIA_OK);
  ASSERT_EQ(charonia_num_constraints(engine), 2u);
  charonia_constraint found;
  found.size = sizeof(found);
  ASSERT_EQ(charonia_constraint_info(engine, 0, &found), CHARONIA_OK);
  EXPECT_EQ(found.relation, CHARONIA_DIVIDES);
  EXPECT_STREQ(found.left, "2");
  EXPECT_STREQ(found.right, "(batch * 6)");
  EXPECT_STREQ(found.reason, "as Reshape 'r' halves it");
  EXPECT_EQ(found.text, manifest.signature.constraintStrings()[0]);
  ASSERT_EQ(charonia_constraint_info(engine, 1, &found), CHARONIA_OK);
  EXPECT_EQ(found.relation, CHARONIA_AT_LEAST);
  EXPECT_STREQ(found.left, "512");
  EXPECT_STREQ(found.right, "batch");
  EXPECT_STREQ(found.reason, "");
  EXPECT_STREQ(found.text, "dimension 0 of x (batch) <= 512");
  // An older header ended after `right`.
  std::memset(&found, 0xee, sizeof(found));
  found.size = offsetof(charonia_constraint, reason);
  const char *untouched = found.reason;
  ASSERT_EQ(charonia_constraint_info(engine, 0, &found), CHARONIA_OK);
  EXPECT_STREQ(found.left, "2");
  EXPECT_EQ(found.reason, untouched);
  EXPECT_EQ(charonia_constraint_info(engine, 2, &found), CHARONIA_NOT_FOUND);
  EXPECT_STREQ(charonia_last_error(), "there is no constraint 2");
  EXPECT_EQ(charonia_constraint_info(engine, 0, nullptr),
            CHARONIA_INVALID_ARGUMENT);
  EXPECT_EQ(charonia_num_constraints(nullptr), 0u);
  charonia_engine_free(engine);
}

TEST(CApi, LoadsWhatCppLoads) {
  TempDir dir;
  auto code = randomBytes(600, 1), weights = randomBytes(5000, 2);
  Writer w;
  w.addSection(SectionKind::Code, "code", code);
  w.addSection(SectionKind::Weights, "weights", weights);
  Manifest manifest = sampleManifest();
  manifest.signature.outputs[0].dims[0] =
      ShapeExpr::symbol(0) * (int64_t(1) << 62);
  ASSERT_TRUE(w.write(manifest, dir / "a.engine").isOk());
  ASSERT_TRUE(charonia::Engine::load(dir / "a.engine").isOk());
  charonia_engine *engine = nullptr;
  ASSERT_EQ(charonia_engine_load((dir / "a.engine").c_str(), &engine),
            CHARONIA_OK)
      << charonia_last_error();
  // Who asks for the shape is told.
  charonia_tensor info;
  const char *text = nullptr, *again = nullptr;
  EXPECT_EQ(charonia_output_info(engine, 0, &info, &text),
            CHARONIA_OUT_OF_RANGE);
  EXPECT_STREQ(charonia_last_error(),
               "the shape expression batch * 4611686018427387904 overflows 64 "
               "bits");
  EXPECT_EQ(charonia_output_info(engine, 0, nullptr, &text), CHARONIA_OK);
  EXPECT_STREQ(text, "float32 [(batch * 4611686018427387904), 16]");
  EXPECT_EQ(charonia_output_info(engine, 0, nullptr, &again), CHARONIA_OK);
  EXPECT_EQ(text, again);
  EXPECT_EQ(charonia_input_info(engine, 0, &info, nullptr), CHARONIA_OK);
  EXPECT_EQ(info.shape[0], 4);
  charonia_engine_free(engine);
}

/// What C++ gives, C gives too.
class CApiRun : public CpuEngine {
protected:
  void SetUp() override {
    CpuEngine::SetUp();
    if (IsSkipped())
      return;
    path = write();
    ASSERT_EQ(charonia_engine_load(path.c_str(), &engine), CHARONIA_OK);
    charonia_context_options options = {};
    options.size = sizeof(options);
    options.threads = 1;
    ASSERT_EQ(charonia_context_create(engine, "cpu", &options, &context),
              CHARONIA_OK);
    charonia_tensor tensor = {CHARONIA_FLOAT32, CHARONIA_HOST, 2, shape,
                              x.data()};
    ASSERT_EQ(charonia_set_input(context, "x", &tensor), CHARONIA_OK);
  }
  void TearDown() override {
    charonia_context_free(context);
    charonia_engine_free(engine);
  }

  template <typename T> static T sized() {
    T value;
    std::memset(&value, 0xee, sizeof(value));
    value.size = sizeof(value);
    return value;
  }

  std::string path;
  const int64_t shape[2] = {4, 16};
  std::vector<float> x = input(4, 1);
  charonia_engine *engine = nullptr;
  charonia_context *context = nullptr;
};

TEST_F(CApiRun, ShapesMemoryAndProfile) {
  EXPECT_STREQ(charonia_context_description(context), "x86-64-v3 on 1 thread");
  EXPECT_EQ(charonia_context_threads(context), 1u);
  EXPECT_EQ(charonia_context_threads(nullptr), 0u);
  const int64_t *future;
  size_t rank;
  ASSERT_EQ(charonia_output_shape(context, "z", &future, &rank), CHARONIA_OK);
  EXPECT_EQ(rank, 1u);
  EXPECT_EQ(future[0], 64);
  auto memory = sized<charonia_memory_info>();
  ASSERT_EQ(charonia_context_memory(context, &memory), CHARONIA_OK);
  EXPECT_EQ(memory.arena_bytes, 4u * 64);
  EXPECT_EQ(memory.arena_lower_bound, 4u * 64);
  EXPECT_EQ(memory.weight_bytes, 128u);
  double seconds = 0;
  ASSERT_EQ(charonia_run_timed(context, &seconds), CHARONIA_OK);
  EXPECT_GT(seconds, 0);
  charonia_tensor y;
  ASSERT_EQ(charonia_output(context, "y", &y), CHARONIA_OK);
  EXPECT_EQ(y.shape[0], 4);

  charonia_profile *profile = nullptr;
  EXPECT_EQ(charonia_profile_create(context, 0, &profile),
            CHARONIA_INVALID_ARGUMENT);
  ASSERT_EQ(charonia_profile_create(context, 2, &profile), CHARONIA_OK);
  EXPECT_EQ(charonia_profile_num_steps(profile), 4u);
  auto step = sized<charonia_step_profile>();
  ASSERT_EQ(charonia_profile_step(profile, 0, &step), CHARONIA_OK);
  EXPECT_STREQ(step.name, "scale_add");
  ASSERT_EQ(step.num_ops, 2u);
  EXPECT_STREQ(step.ops[1], "add");
  ASSERT_EQ(step.num_nodes, 2u);
  EXPECT_STREQ(step.nodes[0], "/mul");
  EXPECT_EQ(step.flops, 4 * 32);
  EXPECT_EQ(step.grid, 4);
  EXPECT_EQ(charonia_profile_step(profile, 4, &step), CHARONIA_NOT_FOUND);
  charonia_profile_free(profile);
}

TEST_F(CApiRun, SymbolsProgramsAndDigest) {
  ASSERT_EQ(charonia_num_symbols(engine), 1u);
  auto symbol = sized<charonia_symbol>();
  ASSERT_EQ(charonia_symbol_info(engine, 0, &symbol), CHARONIA_OK);
  EXPECT_STREQ(symbol.name, "batch");
  EXPECT_EQ(symbol.max, 64);
  EXPECT_EQ(symbol.divisor, 1);
  EXPECT_EQ(charonia_symbol_info(engine, 1, &symbol), CHARONIA_NOT_FOUND);
  EXPECT_STREQ(charonia_last_error(), "there is no shape symbol 1");
  ASSERT_EQ(charonia_num_programs(engine), 1u);
  auto program = sized<charonia_program>();
  ASSERT_EQ(charonia_program_info(engine, 0, &program), CHARONIA_OK);
  EXPECT_STREQ(program.device, "cpu");
  EXPECT_STREQ(program.precision, "fp32");
  ASSERT_EQ(program.num_archs, 1u);
  EXPECT_STREQ(program.archs[0], "x86-64-v3");
  EXPECT_EQ(program.kernels, 2u);
  EXPECT_EQ(charonia_program_info(engine, 1, &program), CHARONIA_NOT_FOUND);
  char digest[65];
  ASSERT_EQ(charonia_engine_digest(engine, digest), CHARONIA_OK);
  EXPECT_EQ(digest, sha256(readBytes(path)));
}

TEST_F(CApiRun, LoadOptions) {
  charonia_load_options options = {};
  options.size = sizeof(options);
  options.no_host_code = 1;
  charonia_engine *other = nullptr;
  ASSERT_EQ(charonia_engine_load_with(path.c_str(), &options, &other),
            CHARONIA_OK);
  charonia_context *refused = nullptr;
  EXPECT_EQ(charonia_context_create(other, "cpu", nullptr, &refused),
            CHARONIA_FAILED_PRECONDITION);
  charonia_engine_free(other);
  options.no_host_code = 0;
  options.digest = "00";
  EXPECT_EQ(charonia_engine_load_with(path.c_str(), &options, &other),
            CHARONIA_INVALID_ARGUMENT);
  options.digest = nullptr;
  // The last byte of a file is one of the weights.
  auto bytes = readBytes(path);
  bytes.back() ^= std::byte(1);
  for (int trusted : {0, 1}) {
    options.no_verify_weights = trusted;
    ASSERT_EQ(charonia_engine_load_memory_with(bytes.data(), bytes.size(),
                                               &options, &other),
              CHARONIA_OK);
    EXPECT_EQ(charonia_context_create(other, "cpu", nullptr, &refused),
              trusted ? CHARONIA_OK : CHARONIA_CORRUPT);
    charonia_engine_free(other);
  }
  charonia_context_free(refused);
}

TEST_F(CApiRun, OlderAndNewerHeaders) {
  // An older header ended after `threads`; what lies behind is not read.
  struct {
    charonia_context_options known;
    char behind[8];
  } options;
  std::memset(&options, 0xff, sizeof(options));
  options.known.threads = 1;
  options.known.size = offsetof(charonia_context_options, isa);
  charonia_context *made = nullptr;
  EXPECT_EQ(charonia_context_create(engine, "cpu", &options.known, &made),
            CHARONIA_OK);
  charonia_context_free(made);
  // A newer one goes on; what is set there cannot be honoured.
  options.known = {};
  options.known.size = sizeof(options);
  EXPECT_EQ(charonia_context_create(engine, "cpu", &options.known, &made),
            CHARONIA_UNSUPPORTED);
  EXPECT_STREQ(
      charonia_last_error(),
      ("charonia_context_options has fields that this library, version " +
       std::string(version()) + ", does not know; they must be zero")
          .c_str());
  std::memset(options.behind, 0, sizeof(options.behind));
  EXPECT_EQ(charonia_context_create(engine, "cpu", &options.known, &made),
            CHARONIA_OK);
  charonia_context_free(made);

  struct {
    charonia_memory_info known;
    uint64_t behind;
  } memory;
  std::memset(&memory, 0xff, sizeof(memory));
  memory.known.size = offsetof(charonia_memory_info, weight_bytes);
  ASSERT_EQ(charonia_context_memory(context, &memory.known), CHARONIA_OK);
  EXPECT_EQ(memory.known.arena_bytes, 4u * 64);
  EXPECT_EQ(memory.known.weight_bytes, UINT64_MAX); // Not the caller's to lose.
  memory.known.size = sizeof(memory);
  ASSERT_EQ(charonia_context_memory(context, &memory.known), CHARONIA_OK);
  EXPECT_EQ(memory.known.weight_bytes, 128u);
  EXPECT_EQ(memory.known.size, sizeof(memory));
  EXPECT_EQ(memory.behind, 0u);
  for (size_t size : {size_t(0), size_t(1) << 20, SIZE_MAX}) {
    memory.known.size = size;
    EXPECT_EQ(charonia_context_memory(context, &memory.known),
              CHARONIA_INVALID_ARGUMENT);
  }
  EXPECT_STREQ(charonia_last_error(),
               "charonia_memory_info::size must be its sizeof");
}

TEST_F(CApiRun, TheRankIsComparedBeforeTheShapeIsRead) {
  // As many extents as the engine takes; behind them nothing may be read.
  auto extents = std::make_unique<int64_t[]>(2);
  charonia_tensor tensor = {CHARONIA_FLOAT32, CHARONIA_HOST, 0, extents.get(),
                            x.data()};
  for (size_t rank : {size_t(1), size_t(1000), SIZE_MAX}) {
    tensor.rank = rank;
    EXPECT_EQ(charonia_set_input(context, "x", &tensor),
              CHARONIA_INVALID_ARGUMENT);
    EXPECT_EQ(charonia_last_error(),
              "the input 'x' takes float32 [batch, 16], not a tensor of rank " +
                  std::to_string(rank));
  }
}

TEST_F(CApiRun, NumbersThatAreNoEnumerators) {
  // 257 is float32 in its lowest eight bits, 256 the host.
  charonia_tensor tensor = {static_cast<charonia_dtype>(257), CHARONIA_HOST, 2,
                            shape, x.data()};
  EXPECT_EQ(charonia_set_input(context, "x", &tensor),
            CHARONIA_INVALID_ARGUMENT);
  tensor.dtype = CHARONIA_FLOAT32;
  tensor.memory = static_cast<charonia_memory>(256);
  EXPECT_EQ(charonia_set_input(context, "x", &tensor),
            CHARONIA_INVALID_ARGUMENT);
  EXPECT_EQ(charonia_set_output(context, "y", x.data(), 256,
                                static_cast<charonia_memory>(256)),
            CHARONIA_INVALID_ARGUMENT);
  EXPECT_EQ(
      charonia_allocate_output(context, "y", static_cast<charonia_memory>(257)),
      CHARONIA_INVALID_ARGUMENT);
  EXPECT_EQ(charonia_dtype_bits(static_cast<charonia_dtype>(257)), 0u);
}

} // namespace
