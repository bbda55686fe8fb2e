// Writes an engine whose code is the tests' image: write_engine <image> <out>
// y = relu(x * w + v) for x of [batch, 16]; w is all 1, v is -1, 0, 1, 2, ...

#include "runtime/engine/Writer.h"

#include <cstdio>
#include <fstream>
#include <iterator>

using namespace charonia;
using namespace charonia::engine;

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  std::ifstream in(argv[1], std::ios::binary);
  std::vector<char> image((std::istreambuf_iterator<char>(in)), {});
  std::vector<float> weights(32, 1);
  for (int i = 0; i < 16; ++i)
    weights[16 + i] = static_cast<float>(i - 1);

  ShapeExpr batch = ShapeExpr::symbol(0);
  Manifest m;
  m.signature.symbols = {{"batch", 1, 3, 64, 1}};
  m.signature.inputs = {{"x", DType::Float32, {batch, 16}}};
  m.signature.outputs = {{"y", DType::Float32, {batch, 16}}};
  Program p;
  p.weightsSection = 1;
  p.kernels = {{"scale_add", {"mul", "add"}, batch * 32, batch * 128, 1},
               {"relu", {"relu"}, batch * 16, batch * 128, 1}};
  Buffer x, w, t, y;
  x.kind = Buffer::Kind::Input, x.size = batch * 64, x.alignment = 16;
  w.kind = Buffer::Kind::Weight, w.size = 128;
  t.size = batch * 64, t.lastStep = 1;
  y.kind = Buffer::Kind::Output, y.size = batch * 64, y.alignment = 16;
  y.firstStep = y.lastStep = 1;
  p.buffers = {x, w, t, y};
  Step first, second;
  first.symbols = second.symbols = {0};
  first.args = {{0, 0}, {1, 0}, {2, 0}};
  second.kernel = 1, second.args = {{2, 0}, {3, 0}};
  p.steps = {first, second};
  Variant v;
  v.arch = "x86-64-v3";
  v.modules = {{{0, 0, image.size()}, {}, {}}};
  KernelCode scaleAdd, relu;
  scaleAdd.grid = relu.grid = batch;
  relu.entryOffset = 64;
  v.kernels = {scaleAdd, relu};
  p.variants = {v};
  m.programs = {p};

  Writer writer;
  writer.addSection(SectionKind::Code, "code", std::as_bytes(std::span(image)));
  writer.addSection(SectionKind::Weights, "weights",
                    std::as_bytes(std::span(weights)));
  Status status = writer.write(m, argv[2]);
  if (!status)
    std::fprintf(stderr, "write_engine: %s\n", status.message().c_str());
  return !status;
}
