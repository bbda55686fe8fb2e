// Tensor maps on a real GPU of sm_90 or later: that the copy engine finds by
// them what it should, at several shapes and in graphs.
#include "charonia/runtime.h"
#include "runtime/engine/Writer.h"

#include <random>

#include <gtest/gtest.h>

using namespace charonia;
using namespace charonia::engine;

namespace {

/// x is [batch, 32], or as images [batch, 8, 4]. A block of `rows` copies eight
/// rows, whose pieces trade places, and puts them back in order; what is behind
/// the last row is 0. A block of `windows` copies an image three times, moved
/// by -1, 0 and 1 pixels, with 0 around it.
constexpr char ptx[] = R"(.version 8.0
.target sm_90
.address_size 64

.visible .entry rows(.param .u64 x, .param .u64 y, .param .u64 batch,
                     .param .align 64 .b8 map[128]) {
  .reg .pred %p<2>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<6>;
  .shared .align 1024 .b8 box[1024];
  .shared .align 8 .b8 barrier[8];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, box;
  mov.u32 %r3, barrier;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra STARTED;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;
  mov.b64 %rd0, map;
  cvta.param.u64 %rd1, %rd0;
  mov.u32 %r4, 0;
  shl.b32 %r5, %r1, 3;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%rd1, {%r4, %r5}], [%r3];
STARTED:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;
  @!%p1 bra WAIT;
  // Row r / 32; of its eight pieces the one that holds column r % 32.
  shr.u32 %r6, %r0, 5;
  and.b32 %r7, %r0, 31;
  shr.u32 %r8, %r7, 2;
  xor.b32 %r8, %r8, %r6;
  and.b32 %r9, %r0, 3;
  shl.b32 %r10, %r6, 7;
  shl.b32 %r11, %r8, 4;
  shl.b32 %r12, %r9, 2;
  add.u32 %r10, %r10, %r11;
  add.u32 %r10, %r10, %r12;
  add.u32 %r10, %r10, %r2;
  ld.shared.b32 %r13, [%r10];
  ld.param.u64 %rd2, [y];
  cvta.to.global.u64 %rd2, %rd2;
  shl.b32 %r14, %r1, 8;
  add.u32 %r14, %r14, %r0;
  mul.wide.u32 %rd3, %r14, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.b32 [%rd4], %r13;
  ret;
}

.visible .entry windows(.param .u64 x, .param .u64 z, .param .u64 batch,
                        .param .align 64 .b8 first[128],
                        .param .align 64 .b8 map[128]) {
  .reg .pred %p<2>;
  .reg .b16 %h<3>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<6>;
  .shared .align 128 .b8 box[384];
  .shared .align 8 .b8 barrier[8];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, box;
  mov.u32 %r3, barrier;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra STARTED;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 384;
  mov.b64 %rd0, map;
  cvta.param.u64 %rd1, %rd0;
  mov.u32 %r4, 0;
  mov.u32 %r5, -1;
  mov.u16 %h0, 0;
  mov.u16 %h1, 1;
  mov.u16 %h2, 2;
  add.u32 %r6, %r2, 128;
  add.u32 %r7, %r2, 256;
  cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
    [%r2], [%rd1, {%r4, %r5, %r1}], [%r3], {%h0};
  cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
    [%r6], [%rd1, {%r4, %r5, %r1}], [%r3], {%h1};
  cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
    [%r7], [%rd1, {%r4, %r5, %r1}], [%r3], {%h2};
STARTED:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;
  @!%p1 bra WAIT;
  shl.b32 %r8, %r0, 2;
  add.u32 %r8, %r8, %r2;
  ld.shared.b32 %r9, [%r8];
  ld.param.u64 %rd2, [z];
  cvta.to.global.u64 %rd2, %rd2;
  mad.lo.u32 %r10, %r1, 96, %r0;
  mul.wide.u32 %rd3, %r10, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.b32 [%rd4], %r9;
  ret;
}
)";

TensorMap rowsMap(ShapeExpr batch) {
  TensorMap map;
  map.elementBytes = 4;
  map.swizzle = 128;
  map.extents = {32, batch};
  map.strides = {128};
  map.box = {32, 8};
  map.steps = {1, 1};
  return map;
}

/// A window of three pixels with one pixel of padding on each side.
TensorMap windowsMap(ShapeExpr batch) {
  TensorMap map;
  map.elementBytes = 4;
  map.extents = {4, 8, batch};
  map.strides = {16, 128};
  map.box = {4, 8};
  map.steps = {1, 1, 1};
  map.lower = {-1}, map.upper = {-1};
  return map;
}

Program program(Range code) {
  ShapeExpr batch = ShapeExpr::symbol(0);
  ShapeExpr blocks = ceilDiv(batch, 8);
  Program p;
  p.device = DeviceKind::Cuda;
  p.kernels = {{"rows", {}, 0, 0, 1}, {"windows", {}, 0, 0, 1}};
  Buffer x, y, z;
  x.kind = Buffer::Kind::Input, x.size = batch * 128, x.lastStep = 1;
  y.kind = Buffer::Kind::Output, y.size = blocks * 1024;
  z.kind = Buffer::Kind::Output, z.size = batch * 384, z.index = 1;
  z.firstStep = z.lastStep = 1;
  x.alignment = y.alignment = z.alignment = 4;
  p.buffers = {x, y, z};
  Step rows, windows;
  rows.args = {{0, 0}, {1, 0}};
  windows.kernel = 1, windows.args = {{0, 0}, {2, 0}};
  rows.symbols = windows.symbols = {0};
  p.steps = {rows, windows};
  KernelCode first, second;
  first.entry = "rows", first.grid = blocks, first.blockThreads = 256;
  first.maps = {rowsMap(batch)};
  second.entry = "windows", second.grid = batch, second.blockThreads = 96;
  second.maps = {rowsMap(batch), windowsMap(batch)};
  Variant v;
  v.arch = "sm_90";
  v.modules = {{{}, code, {}}};
  v.kernels = {first, second};
  p.variants = {v};
  return p;
}

std::vector<std::byte> engineBytes() {
  ShapeExpr batch = ShapeExpr::symbol(0);
  Manifest m;
  m.signature.symbols = {{"batch", 0, 8, 64, 1}};
  m.signature.inputs = {{"x", DType::Float32, {batch, 32}}};
  m.signature.outputs = {{"y", DType::Float32, {ceilDiv(batch, 8) * 8, 32}},
                         {"z", DType::Float32, {batch, 3, 8, 4}}};
  CodeSection code(0);
  m.programs = {program(code.addText(ptx))};
  Writer writer;
  writer.addSection(SectionKind::Code, "code", code.bytes());
  std::vector<std::byte> bytes;
  Status written = writer.write(m, bytes);
  EXPECT_TRUE(written.isOk()) << written.message();
  return bytes;
}

void expectCopies(const std::vector<float> &x, const float *y, const float *z) {
  size_t batch = x.size() / 32;
  for (size_t i = 0; i < (batch + 7) / 8 * 256; ++i)
    ASSERT_EQ(y[i], i < x.size() ? x[i] : 0) << "of y, element " << i;
  for (size_t n = 0; n < batch; ++n)
    for (int k = 0; k < 3; ++k)
      for (int w = 0; w < 8; ++w)
        for (int c = 0; c < 4; ++c) {
          int from = w + k - 1;
          ASSERT_EQ(z[((n * 3 + k) * 8 + w) * 4 + c],
                    from < 0 || from > 7 ? 0 : x[(n * 8 + from) * 4 + c])
              << "of z, image " << n << ", window " << k << ", pixel " << w;
        }
}

TEST(GpuTensorMaps, CopyWhatTheySay) {
  std::vector<std::byte> bytes = engineBytes();
  Result<Engine> loaded = Engine::load(bytes);
  ASSERT_TRUE(loaded) << loaded.status().message();
  Result<Context> context = loaded->createContext({DeviceKind::Cuda}, {});
  if (!context &&
      context.status().message().find("no program") != std::string::npos)
    GTEST_SKIP() << context.status().message();
  ASSERT_TRUE(context) << context.status().message();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  // Three times: launched, recorded and replayed.
  for (int64_t batch : {64, 1, 8, 8, 8, 13, 13, 13, 0, 1, 1, 64})
    for (size_t odd : {0, 1}) {
      std::vector<float> memory(batch * 32 + odd);
      for (float &value : memory)
        value = normal(random);
      ASSERT_TRUE(
          context->setInput("x", {DType::Float32, {batch, 32}, &memory[odd]})
              .isOk());
      Status ran = context->run();
      ASSERT_TRUE(ran.isOk()) << ran.message();
      memory.erase(memory.begin(), memory.begin() + odd);
      expectCopies(memory,
                   static_cast<const float *>(context->output("y")->data),
                   static_cast<const float *>(context->output("z")->data));
    }
}

} // namespace
