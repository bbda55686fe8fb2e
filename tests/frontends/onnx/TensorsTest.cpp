// Tensors of all types and storages end up as the right bytes.
#include "graph/ir/Dialect.h"
#include "tests/frontends/onnx/Models.h"

using namespace charonia;
using namespace charonia::test;
using ::onnx::ModelProto;
using ::onnx::TensorProto;
using ::testing::HasSubstr;

namespace {
/// A model that gives back its one initializer.
ModelProto identity(int type, int count) {
  ModelProto model =
      parse("graph () => (float[N, 2] y) { y = Identity (w) }", 19);
  auto *tensor = model.mutable_graph()
                     ->mutable_output(0)
                     ->mutable_type()
                     ->mutable_tensor_type();
  tensor->set_elem_type(type);
  auto &weight = *model.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(type);
  // A vector of integers could be a shape, and would be a constant.
  weight.add_dims(count / 2);
  weight.add_dims(2);
  return model;
}

/// The weight's bytes; only weights are in the store, so it has over 64
/// elements.
std::string bytesOf(const ModelProto &model, std::string *text = nullptr) {
  mlir::MLIRContext context;
  auto result = frontend::importOnnxBytes(model.SerializeAsString(),
                                          "test.onnx", {}, context);
  if (text)
    *text = result.toString();
  auto *dialect = context.getLoadedDialect<graph::GraphDialect>();
  const graph::Weight *weight = dialect->getWeights().lookup("w");
  EXPECT_EQ(bool(weight), bool(result.module));
  return weight ? std::string(weight->bytes.data(), weight->bytes.size()) : "";
}

template <typename T> std::string bytes(std::vector<T> values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}
constexpr int count = 70;
} // namespace

TEST(Tensors, TypedFieldsOfFullWidth) {
  ModelProto model = identity(TensorProto::FLOAT, count);
  std::vector<float> floats;
  for (int i = 0; i < count; ++i)
    floats.push_back(i / 3.0f);
  auto &weight = *model.mutable_graph()->mutable_initializer(0);
  weight.mutable_float_data()->Assign(floats.begin(), floats.end());
  EXPECT_EQ(bytesOf(model), bytes(floats));
}

TEST(Tensors, TypedFieldsAreNarrowed) {
  auto check = [](int type, auto sample) {
    using T = decltype(sample);
    ModelProto model = identity(type, count);
    std::vector<T> expected;
    for (int i = 0; i < count; ++i) {
      expected.push_back(T(i * 123));
      model.mutable_graph()->mutable_initializer(0)->add_int32_data(
          int32_t(T(i * 123)));
    }
    EXPECT_EQ(bytesOf(model), bytes(expected)) << type;
  };
  check(TensorProto::UINT8, uint8_t());
  check(TensorProto::INT8, int8_t());
  check(TensorProto::UINT16, uint16_t());
  check(TensorProto::INT16, int16_t());
  check(TensorProto::FLOAT16, uint16_t());
  check(TensorProto::BFLOAT16, uint16_t());
}

TEST(Tensors, BoolsAreZeroAndOne) {
  ModelProto model = identity(TensorProto::BOOL, count);
  std::string raw(count, '\0');
  raw[3] = '\xff';
  raw[5] = '\1';
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(raw);
  raw[3] = '\1';
  EXPECT_EQ(bytesOf(model), raw);
}

TEST(Tensors, UnsignedThroughWiderField) {
  ModelProto model = identity(TensorProto::UINT32, count);
  std::vector<uint32_t> expected;
  for (int i = 0; i < count; ++i) {
    expected.push_back(4000000000u + i);
    model.mutable_graph()->mutable_initializer(0)->add_uint64_data(
        expected.back());
  }
  EXPECT_EQ(bytesOf(model), bytes(expected));
}

TEST(Tensors, Sparse) {
  ModelProto model = parse("graph () => (float[N] y) { y = Identity (w) }");
  auto &sparse = *model.mutable_graph()->add_sparse_initializer();
  sparse.add_dims(count);
  auto &values = *sparse.mutable_values(), &indices = *sparse.mutable_indices();
  values.set_name("w");
  values.set_data_type(TensorProto::FLOAT);
  values.add_dims(2);
  values.add_float_data(1.5f);
  values.add_float_data(2.5f);
  indices.set_data_type(TensorProto::INT64);
  indices.add_dims(2);
  indices.add_int64_data(7);
  indices.add_int64_data(69);
  std::vector<float> expected(count, 0.0f);
  expected[7] = 1.5f;
  expected[69] = 2.5f;
  EXPECT_EQ(bytesOf(model), bytes(expected));
  indices.set_int64_data(1, 70);
  std::string text;
  bytesOf(model, &text);
  EXPECT_THAT(text, HasSubstr("tensor 'w' is a sparse tensor with an index out "
                              "of its shape"));
}

TEST(Tensors, WrongContents) {
  auto check = [](auto edit, const char *message) {
    ModelProto model = identity(TensorProto::FLOAT, count);
    edit(*model.mutable_graph()->mutable_initializer(0));
    EXPECT_THAT(import(model), HasSubstr(message));
  };
  check([](TensorProto &t) { t.set_raw_data("12345"); },
        "tensor 'w' holds 5 bytes, but its shape and type take 280");
  check([](TensorProto &t) { t.add_float_data(1); },
        "tensor 'w' holds 1 values, but its shape has 70");
  check([](TensorProto &t) { t.set_dims(0, -35); },
        "tensor 'w' has a negative dimension, -35");
  check(
      [](TensorProto &t) {
        t.add_dims(int64_t(1) << 60);
        t.add_dims(int64_t(1) << 60);
      },
      "tensor 'w' has a shape that is absurdly large");
  check([](TensorProto &t) { t.set_data_type(TensorProto::STRING); },
        "tensor 'w' element type string is not supported");
  check([](TensorProto &t) { t.set_data_type(1234); },
        "tensor 'w' element type type 1234 is not supported");
  check([](TensorProto &t) { t.mutable_segment()->set_begin(0); },
        "tensor 'w' is a segment of a tensor, which is not supported");
}

TEST(Tensors, UnusedOnesAreNotRead) {
  ModelProto model =
      parse("graph (float[2] x) => (float[2] y) { y = Neg (x) }");
  auto &weight = *model.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(TensorProto::STRING);
  EXPECT_EQ(import(model), "");
}
