// Graphs that are text.
#include "tests/frontends/tensorflow/Import.h"

using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

static std::string importText(const std::string &text) {
  return importTensorFlow({{"graph.pbtxt", text}});
}

TEST(TensorFlowText, Graph) {
  std::string text = R"(
    # A comment.
    node { name: "x" op: "Placeholder"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: -1 } dim < size: 2 > } } } }
    node { name: "c" op: 'Const';
      attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value", value { tensor {
        dtype: DT_FLOAT tensor_shape { dim { size: 2 } }
        tensor_content: "\000\000\200?" "\x00\x00\x00\x40" } } }
      experimental_debug_info { original_node_names: ["a", "b"] unknown: -1.5e3 [some.ext] { x: 1 } } }
    node { name: "y" op: "Mul" input: ["x", "c"] attr { key: "T" value { type: DT_FLOAT } } }
    versions { producer: 0x19 }
  )";
  EXPECT_THAT(importText(text),
              AllOf(HasSubstr("dense<[1.000000e+00, 2.000000e+00]>"),
                    HasSubstr("graph.name = \"y\""), HasSubstr("x_dim0"),
                    Not(HasSubstr("error"))));
  // Cut anywhere: a message or a module, never a crash.
  for (size_t size = 0; size < text.size(); size += 3)
    importText(text.substr(0, size));
}

TEST(TensorFlowText, WhatIsWrongAndWhere) {
  EXPECT_THAT(importText("node {\n name: x\n}"),
              HasSubstr("line 2: field 'name' has a value of another kind"));
  EXPECT_THAT(importText("node { name: \"x"), HasSubstr("a text does not end"));
  EXPECT_THAT(importText("node {"), HasSubstr("it ends early"));
  EXPECT_THAT(importText("node"), HasSubstr("field 'node' has no value"));
  EXPECT_THAT(importText("node { attr { value { i: 7x } } }"),
              HasSubstr("'7x' is no value of field 'i'"));
  std::string deep;
  for (int i = 0; i < 100; ++i)
    deep += "a {";
  EXPECT_THAT(importText(deep), HasSubstr("over 64 deep"));
}
