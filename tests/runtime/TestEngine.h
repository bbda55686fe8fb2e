//===- TestEngine.h - Pieces that the runtime's tests share -----*- C++ -*-===//
#ifndef CHARONIA_TESTS_RUNTIME_TESTENGINE_H
#define CHARONIA_TESTS_RUNTIME_TESTENGINE_H

#include "runtime/engine/Engine.h"
#include "runtime/engine/Writer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace charonia::test {

/// A folder that disappears with the object.
class TempDir {
public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "charonia-XXXXXX").string();
    dir = mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(dir); }
  std::string operator/(const std::string &name) const {
    return (dir / name).string();
  }
  size_t count() const {
    return std::distance(std::filesystem::directory_iterator(dir), {});
  }

private:
  std::filesystem::path dir;
};

/// Runs `body` in a process of its own and returns its exit code; -1: a signal,
/// which a hang gets too.
inline int inChild(const std::function<int()> &body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline std::vector<std::byte> readBytes(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars((std::istreambuf_iterator<char>(in)), {});
  auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

inline std::vector<std::byte> randomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte &b : bytes)
    b = static_cast<std::byte>(random());
  return bytes;
}

/// y = relu(x * w + v) for x of [batch, 16], batch in 0..64, in two kernels;
/// and z, a copy of y of which the first element is 1. The program lacks its
/// variants; its weights, w and v, are in section 1.
inline engine::Manifest reluManifest() {
  using namespace engine;
  Manifest m;
  ShapeExpr batch = ShapeExpr::symbol(0);
  m.signature.symbols = {{"batch", 0, 4, 64, 1}};
  m.signature.inputs = {{"x", DType::Float32, {batch, 16}}};
  m.signature.outputs = {{"y", DType::Float32, {batch, 16}},
                         {"z", DType::Float32, {batch * 16}}};
  Program p;
  p.weightsSection = 1;
  p.kernels = {{"scale_add", {"mul", "add"}, batch * 32, batch * 128, 1},
               {"relu", {"relu"}, batch * 16, batch * 128, 1}};
  Buffer x, w, t, y, z;
  x.kind = Buffer::Kind::Input, x.size = batch * 64, x.alignment = 16;
  w.kind = Buffer::Kind::Weight, w.size = 128;
  t.size = batch * 64, t.lastStep = 1;
  y.kind = Buffer::Kind::Output, y.size = batch * 64;
  y.firstStep = 1, y.lastStep = 2, y.alignment = 16;
  z.kind = Buffer::Kind::Output, z.index = 1, z.size = batch * 64;
  z.firstStep = 2, z.lastStep = 3, z.alignment = 4;
  p.buffers = {x, w, t, y, z};
  Step first, second, copy;
  first.kernel = 0, first.args = {{0, 0}, {1, 0}, {2, 0}};
  first.symbols = second.symbols = {0};
  first.nodes = {"/mul", "/add"};
  second.kernel = 1, second.args = {{2, 0}, {3, 0}};
  copy.kind = Step::Kind::Copy, copy.args = {{4, 0}, {3, 0}};
  copy.bytes = batch * 64;
  Step fill; // The first element of z becomes 1.0.
  fill.kind = Step::Kind::Fill, fill.args = {{4, 0}};
  fill.bytes = min(batch, 1) * 4;
  fill.pattern = 0x3f800000, fill.patternSize = 4;
  p.steps = {first, second, copy, fill};
  m.programs = {p};
  return m;
}

/// Writes such an engine there; gives the path.
inline std::string writeEngine(const engine::Manifest &manifest,
                               std::span<const std::byte> code,
                               const std::vector<float> &weights,
                               std::string path) {
  engine::Writer w;
  w.addSection(engine::SectionKind::Code, "code", code);
  w.addSection(engine::SectionKind::Weights, "weights",
               std::as_bytes(std::span(weights)));
  Status status = w.write(manifest, path);
  EXPECT_TRUE(status.isOk()) << status.message();
  return path;
}

/// An input of it.
inline std::vector<float> input(int64_t batch, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(batch * 16);
  for (float &v : x)
    v = normal(random);
  return x;
}

/// Of rows of 16 floats, one for each of the first symbol: argument 0.
inline engine::TensorMap rowsMap() {
  engine::TensorMap map;
  map.elementBytes = 4;
  map.extents = {16, ShapeExpr::symbol(0)};
  map.strides = {64};
  map.box = {16, 8};
  map.steps = {1, 1};
  return map;
}

/// Of two images of 4x2 pixels with 16 numbers of 16 bits: argument 1.
inline engine::TensorMap pixelsMap() {
  engine::TensorMap map;
  map.argument = 1;
  map.swizzle = 128;
  map.extents = {16, 4, 2, 2};
  map.strides = {32, 128, 256};
  map.box = {16, 64};
  map.steps = {1, 2, 1, 1};
  map.lower = {-1, -1};
  map.upper = {1, 0};
  return map;
}

/// Lets the sample's second launch run beside the first: of the same input, and
/// to memory of its own.
inline void makeWave(engine::Program &program) {
  program.steps[1].besidePrevious = true;
  program.steps[1].args = {{0, 0}, {3, 0}};
  program.buffers[0].lastStep = program.buffers[1].lastStep = 1;
  program.buffers[3].alias = engine::noIndex;
}

/// A manifest that uses every field but Step::besidePrevious: y = f(x, w) for x
/// of [batch, 16], through an arena value, with CPU and CUDA programs over
/// sections 0 (code) and 1 (weights).
inline engine::Manifest sampleManifest() {
  using namespace engine;
  Manifest m;
  ShapeExpr batch = ShapeExpr::symbol(0);
  m.signature.symbols = {{"batch", 1, 4, 64, 1}};
  m.signature.inputs = {{"x", DType::Float32, {batch, 16}}};
  m.signature.outputs = {{"y", DType::Float32, {batch, 16}}};
  m.signature.constraints = {{Constraint::Relation::Divides, 2, batch * 6,
                              "as Reshape 'r' halves it"}};
  for (DeviceKind device : {DeviceKind::Cpu, DeviceKind::Cuda}) {
    Program p;
    p.device = device;
    p.precision = device == DeviceKind::Cpu ? "fp32" : "fp16";
    p.weightsSection = 1;
    p.kernels = {
        {"gemm_bias", {"matmul 16x16", "add"}, batch * 512, batch * 128, 1},
        {"relu", {"relu"}, batch * 16, batch * 128, 1}};
    Buffer x, w, t, u, y;
    x.name = "x", x.kind = Buffer::Kind::Input, x.size = batch * 64;
    x.alignment = 16;
    w.name = "w", w.kind = Buffer::Kind::Weight, w.weightOffset = 64;
    w.size = 1024, w.lastStep = 0;
    t.name = "t", t.size = batch * 64, t.lastStep = 1;
    u.name = "u", u.size = batch * 64, u.firstStep = 1, u.lastStep = 2;
    u.alias = 2;
    y.name = "y", y.kind = Buffer::Kind::Output, y.size = batch * 64;
    y.firstStep = 2, y.lastStep = 3, y.alignment = 16;
    p.buffers = {x, w, t, u, y};
    Step launch, relu, copy, fill;
    launch.kernel = 0;
    launch.args = {{0, 0}, {1, 0}, {2, 0}};
    launch.nodes = {"/fc/MatMul", "/fc/Add"};
    launch.symbols = relu.symbols = {0};
    relu.kernel = 1;
    relu.args = {{2, 0}, {3, 0}};
    copy.kind = Step::Kind::Copy;
    copy.args = {{4, 0}, {3, 0}};
    copy.bytes = batch * 64;
    fill.kind = Step::Kind::Fill;
    fill.args = {{4, batch * 64 - 4}};
    fill.bytes = 4, fill.pattern = 0x3f800000, fill.patternSize = 4;
    p.steps = {launch, relu, copy, fill};
    Variant v;
    KernelCode gemm, act;
    gemm.entry = "gemm_bias", gemm.grid = ceilDiv(batch, 4);
    act.entry = "relu", act.grid = batch;
    if (device == DeviceKind::Cpu) {
      v.arch = "x86-64-v3";
      v.modules = {{{0, 0, 256}, {}, {}}};
      gemm.scratchBytes = 4096, act.entryOffset = 128, act.grain = 8;
    } else {
      v.arch = "sm_80";
      v.modules = {{{}, {0, 256, 100}, {0, 512, 64}}};
      gemm.maps = {rowsMap(), pixelsMap()};
      gemm.blockThreads = 128, gemm.sharedBytes = 65536, gemm.registers = 90;
      act.blockThreads = 256, act.clusterSize = 2, act.spillBytes = 8;
      act.waitsForPrevious = act.waitsAtEnd = true;
      act.operations = 5000, act.neededOperations = 1000;
      act.accessedBytes = 64000, act.neededBytes = 16000;
      act.indexed = batch * 16;
    }
    v.kernels = {gemm, act};
    p.variants = {v};
    m.programs.push_back(p);
  }
  m.build = {"charonia 0.1.0",
             "sample.onnx",
             "0123abcd",
             {{"target", "cpu,sm_80"}},
             {{"memory.peak", "64"}}};
  return m;
}

} // namespace charonia::test

#endif // CHARONIA_TESTS_RUNTIME_TESTENGINE_H
