// The C interface's own part: statuses, messages, null pointers. What it does
// with an engine is tested by examples/run_engine.

#include "TestEngine.h"

#include "charonia/charonia.h"
#include "charonia/runtime.h"
#include "runtime/engine/Writer.h"

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
               "not the shape 4");
  EXPECT_EQ(charonia_run(context), CHARONIA_FAILED_PRECONDITION);
  EXPECT_EQ(charonia_output(context, "y", &info), CHARONIA_FAILED_PRECONDITION);
  charonia_context_free(context);
}

} // namespace
