// Exported programs as modules: names, ranges, weights, and what is refused.
#include "tests/frontends/pytorch/Import.h"

using namespace charonia;
using namespace charonia::test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

static std::string import(const ProgramFile &program,
                          const std::string &shape = "") {
  frontend::ImportOptions options;
  if (!shape.empty())
    EXPECT_EQ(frontend::parseShapeOption(shape, options.shapes), "");
  return importPyTorch(program.file(), options);
}

TEST(PyTorch, NamesAndRanges) {
  EXPECT_THAT(import(simpleProgram()),
              AllOf(HasSubstr("max = 8 : i64, min = 1 : i64, name = "
                              "\"x_dim0\", opt = 1 : i64"),
                    HasSubstr("{graph.name = \"x\"}"),
                    HasSubstr("{graph.name = \"logits\"}")));
}

TEST(PyTorch, ShapeOptionNarrows) {
  EXPECT_THAT(import(simpleProgram(), "x=2..3..4x4"),
              HasSubstr("max = 4 : i64, min = 2 : i64, name = \"x_dim0\", opt "
                        "= 3 : i64"));
  EXPECT_THAT(import(simpleProgram(), "x=5x4"),
              HasSubstr("(%arg0: tensor<5x4xf32>"));
  EXPECT_THAT(import(simpleProgram(), "x=1..9x4"),
              HasSubstr("input 'x': --shape gives dimension 0 1..9, but the "
                        "model was exported for 1..8"));
  EXPECT_THAT(import(simpleProgram(), "x=2x5"),
              HasSubstr("the model fixes dimension 1 to 4"));
  EXPECT_THAT(import(simpleProgram(), "y=2x5"),
              HasSubstr("--shape names 'y', which is no input"));
}

TEST(PyTorch, OtherFormsAreRefused) {
  auto refused = [](const std::vector<ZipEntry> &entries, const char *what) {
    EXPECT_THAT(importPyTorch(zipFile(entries)),
                AllOf(HasSubstr(std::string("error: m.pt2: ") + what),
                      HasSubstr("export it with torch 2.9 or newer:"),
                      HasSubstr("torch.export.save(program, \"model.pt2\")")));
  };
  refused({{"serialized_exported_program.json", "{}"}, {"version", "8.2"}},
          "is an exported program of torch 2.8 or older");
  refused({{"m/models/model.json", "{}"}, {"m/data/weights/model.pt", ""}},
          "is an exported program of torch 2.8, whose weights are pickles");
  refused({{"m/data.pkl", "x"}, {"m/code/a.py", "x"}}, "is a TorchScript file");
  refused({{"m/data.pkl", "x"}, {"m/data/0", "x"}},
          "is a pickle of torch.save: weights or Python objects");
  refused({{"m/data/aotinductor/model/a.so", "x"}, {"m/b", ""}},
          "is a package of AOTInductor");
  refused({{"a", "x"}}, "is a zip file without an exported program");
}

TEST(PyTorch, Markers) {
  auto entries = simpleProgram().entries();
  entries[2].bytes = "big";
  EXPECT_THAT(importPyTorch(zipFile(entries)),
              HasSubstr("its weights are in byte order 'big'"));
  entries = simpleProgram().entries();
  entries.push_back({"model/models/other.json", "{}"});
  EXPECT_THAT(importPyTorch(zipFile(entries)),
              HasSubstr("holds several programs: model, other"));
}

TEST(PyTorch, UnsupportedOperatorsAllAtOnce) {
  ProgramFile p = simpleProgram();
  p.nodes =
      node("aten.renorm.default", {{"self", tensor("x")}}, tensor("add")) +
      ", " +
      node("torchvision.nms.default", {{"self", tensor("add")}},
           tensor("relu"));
  EXPECT_THAT(
      import(p),
      AllOf(HasSubstr("error: m.pt2: node 'head' (aten.renorm.default): "
                      "operator aten.renorm.default is not supported\n"),
            HasSubstr("line: m.py:7: return self.head(x)"),
            HasSubstr("inputs: self: float32[x_dim0, 4]"),
            HasSubstr("remedy: try program.run_decompositions() before saving"),
            HasSubstr("operator torchvision.nms.default is not supported: it "
                      "is of namespace 'torchvision'")));
  // Where there is no decomposition, none is told of.
  p = simpleProgram();
  p.nodes =
      node("aten._int_mm.default", {{"self", tensor("x")}}, tensor("add")) +
      ", " +
      node("aten.relu.default", {{"self", tensor("add")}}, tensor("relu"));
  EXPECT_THAT(import(p),
              AllOf(HasSubstr("operator aten._int_mm.default is not supported"),
                    HasSubstr("remedy: replace it in the model"),
                    Not(HasSubstr("run_decompositions"))));
  p.nodes = node("torch._functorch.predispatch._add_batch_dim",
                 {{"self", tensor("x")}}, tensor("relu"));
  EXPECT_THAT(import(p),
              AllOf(HasSubstr("it is a part of torch.vmap"),
                    HasSubstr("export with program.run_decompositions()")));
}

TEST(PyTorch, OnlyWhatOutputsNeed) {
  ProgramFile p = simpleProgram();
  p.nodes += ", " + node("aten.renorm.default", {{"self", tensor("x")}},
                         tensor("unused"));
  EXPECT_THAT(import(p), Not(HasSubstr("error")));
}

TEST(PyTorch, ResultOfAnotherType) {
  ProgramFile p = simpleProgram();
  size_t at = p.tensors.find("\"relu\": ");
  p.tensors.replace(at, std::string::npos,
                    "\"relu\": " + tensorMeta(7, symbol("s0") + ", " + fixed(5),
                                              fixed(5) + ", " + fixed(1)));
  EXPECT_THAT(import(p),
              HasSubstr("(aten.relu.default): result 0 is float32[x_dim0, 4], "
                        "but the file says float32[x_dim0, 5]"));
  // A size that is open is no number, though it might be that one.
  p.tensors.replace(at, std::string::npos,
                    "\"relu\": " + tensorMeta(7, fixed(4) + ", " + symbol("s0"),
                                              symbol("s0") + ", " + fixed(1)));
  EXPECT_THAT(import(p),
              HasSubstr("(aten.relu.default): result 0 is float32[x_dim0, 4], "
                        "but the file says float32[4, x_dim0]"));
}

TEST(PyTorch, NamesThatAreMissingOrCyclic) {
  ProgramFile p = simpleProgram();
  p.nodes =
      node("aten.relu.default", {{"self", tensor("nowhere")}}, tensor("relu"));
  EXPECT_THAT(import(p), HasSubstr("tensor 'nowhere' is not defined before it "
                                   "is used"));
  p.nodes =
      node("aten.relu.default", {{"self", tensor("relu")}}, tensor("relu"));
  EXPECT_THAT(import(p), HasSubstr("error"));
  p.nodes =
      node("aten.relu.default", {{"self", tensor("relu")}}, tensor("add")) +
      ", " +
      node("aten.relu.default", {{"self", tensor("add")}}, tensor("relu"));
  EXPECT_THAT(import(p), HasSubstr("error"));
  p = simpleProgram();
  p.nodes +=
      ", " + node("aten.relu.default", {{"self", tensor("x")}}, tensor("relu"));
  EXPECT_THAT(import(p), HasSubstr("tensor 'relu' is defined twice"));
}

TEST(PyTorch, ArgumentsThatARowDoesNotKnow) {
  ProgramFile p = simpleProgram();
  p.nodes = node("aten.relu.default",
                 {{"self", tensor("x")}, {"hint", R"({"as_int": 3})"}},
                 tensor("relu"));
  EXPECT_THAT(import(p), HasSubstr("argument 'hint' is not supported"));
  p.nodes = node("aten.add.Tensor",
                 {{"self", tensor("x")}, {"other", R"({"as_new_kind": 3})"}},
                 tensor("relu"));
  EXPECT_THAT(import(p), HasSubstr("argument 'other' is of a kind that is not "
                                   "supported, as_new_kind"));
}

/// What a program computes of sizes may be negative, which those are not.
TEST(PyTorch, NegativeIntegers) {
  ProgramFile p = simpleProgram();
  p.integers = R"("neg": {"as_int": -9})";
  EXPECT_THAT(import(p), Not(HasSubstr("error")));
}

TEST(PyTorch, StoragesThatDoNotHold) {
  ProgramFile p = simpleProgram();
  p.storages["weight_0"] = std::string(15, 0);
  EXPECT_THAT(import(p), HasSubstr("tensor 'w' reaches behind its storage, "
                                   "which has 15 bytes"));
  p = simpleProgram();
  p.storages.clear();
  EXPECT_THAT(import(p), HasSubstr("has no entry 'data/weights/weight_0'"));
  p = simpleProgram();
  p.weights = "";
  EXPECT_THAT(import(p), HasSubstr("tensor 'w' is not among the file's "
                                   "weights"));
  auto weight = [](const std::string &meta, const char *pickle = "false") {
    ProgramFile p = simpleProgram();
    p.weights = R"("w": {"path_name": "weight_0", "use_pickle": )" +
                std::string(pickle) + R"(, "tensor_meta": )" + meta + "}";
    return import(p);
  };
  EXPECT_THAT(weight(tensorMeta(7, fixed(4), fixed(1)), "true"),
              HasSubstr("tensor 'w' is stored as a pickle, which is never "
                        "read"));
  EXPECT_THAT(weight(tensorMeta(33, fixed(4), fixed(1))),
              HasSubstr("tensor 'w' is of float8_e8m0fnu, which is not "
                        "supported"));
  EXPECT_THAT(weight(tensorMeta(7, fixed(4), fixed(-1))),
              HasSubstr("strides[0].as_int is -1, which is no size"));
  EXPECT_THAT(weight(tensorMeta(7, fixed(4), fixed(1), int64_t(1) << 62)),
              HasSubstr("reaches behind its storage"));
  EXPECT_THAT(weight(tensorMeta(
                  7, fixed(int64_t(1) << 39) + "," + fixed(int64_t(1) << 39),
                  fixed(0) + "," + fixed(0))),
              HasSubstr("absurdly large"));
}

TEST(PyTorch, StridesOfWeights) {
  // Transposed, spread, and with gaps.
  auto weight = [](const std::string &sizes, const std::string &strides) {
    ProgramFile p = simpleProgram();
    p.weights = R"("w": {"path_name": "weight_0", "tensor_meta": )" +
                tensorMeta(7, sizes, strides) + "}";
    p.storages["weight_0"] = std::string(32, 0);
    for (int i = 0; i < 8; ++i) {
      float value = static_cast<float>(i);
      std::memcpy(p.storages["weight_0"].data() + 4 * i, &value, 4);
    }
    p.inputs = tensor("p_w");
    p.inputSpecs = R"({"parameter": {"arg": {"name": "p_w"},
                      "parameter_name": "w"}})";
    p.nodes =
        node("aten.relu.default", {{"self", tensor("p_w")}}, tensor("relu"));
    p.tensors = R"("p_w": )" + tensorMeta(7, sizes, strides) + R"(, "relu": )" +
                tensorMeta(7, sizes, strides);
    return import(p);
  };
  EXPECT_THAT(weight(fixed(2) + "," + fixed(4), fixed(1) + "," + fixed(2)),
              AllOf(HasSubstr("dense<[[0.000000e+00, 1.000000e+00], "
                              "[2.000000e+00"),
                    HasSubstr("graph.transpose")));
  EXPECT_THAT(weight(fixed(3) + "," + fixed(4), fixed(0) + "," + fixed(1)),
              AllOf(HasSubstr("graph.broadcast"),
                    HasSubstr("tensor<1x4xf32>) -> tensor<3x4xf32>")));
  EXPECT_THAT(weight(fixed(2) + "," + fixed(3), fixed(4) + "," + fixed(1)),
              HasSubstr("dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00], "
                        "[4.000000e+00, 5.000000e+00, 6.000000e+00]]>"));
  // The stride of a single column says nothing.
  EXPECT_THAT(
      weight(fixed(2) + "," + fixed(1), fixed(4) + "," + fixed(INT64_MAX)),
      HasSubstr("dense<[[0.000000e+00], [4.000000e+00]]>"));
  // What overlaps is copied, but not much of it.
  EXPECT_THAT(weight(fixed(2) + "," + fixed(3), fixed(1) + "," + fixed(1)),
              HasSubstr("dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00], "
                        "[1.000000e+00, 2.000000e+00, 3.000000e+00]]>"));
  EXPECT_THAT(weight(fixed(3) + "," + fixed(2) + "," + fixed(16384),
                     fixed(1) + "," + fixed(1) + "," + fixed(0)),
              HasSubstr("has elements that overlap in memory"));
}

TEST(PyTorch, SizesThatMayBeNone) {
  ProgramFile p = simpleProgram();
  p.ranges = R"("s0": {"min_val": 0, "max_val": 8})";
  EXPECT_THAT(import(p),
              AllOf(HasSubstr("note: m.pt2: size 'x_dim0' may be 0 in the "
                              "file; the engine takes 1 and more"),
                    Not(HasSubstr("error"))));
}

TEST(PyTorch, ShapeOptionFixesDerivedSizes) {
  // y is of 2 * s0 + 1 rows.
  ProgramFile p = simpleProgram();
  std::string rows = symbol("s0");
  rows.replace(rows.find("Symbol("),
               rows.find("\", \"hint") - rows.find("Symbol("),
               "Add(Mul(Integer(2), Symbol('s0', positive=True, "
               "integer=True)), Integer(1))");
  p.inputs += ", " + tensor("y");
  p.inputSpecs += R"(, {"user_input": {"arg": {"as_tensor": {"name": "y"}}}})";
  p.tensors += R"(, "y": )" + tensorMeta(7, rows + ", " + fixed(4),
                                         fixed(4) + ", " + fixed(1));
  EXPECT_THAT(import(p, "y=7x4"), HasSubstr("(%arg0: tensor<3x4xf32>"));
  EXPECT_THAT(import(p, "y=8x4"),
              HasSubstr("input 'y': size 8 is not x_dim0*2 + 1, as which the "
                        "program was exported"));
  EXPECT_THAT(import(p, "y=19x4"),
              HasSubstr("input 'y': size 19 is not x_dim0*2 + 1, as which "
                        "the program was exported"));
}

TEST(PyTorch, EinsumOfOneOperand) {
  // It permutes its operand, or sums: what is written behind may show.
  auto written = [](const std::string &equation, const std::string &operands) {
    ProgramFile p = simpleProgram();
    std::string meta = tensorMeta(7, symbol("s0") + ", " + fixed(4),
                                  fixed(4) + ", " + fixed(1));
    p.nodes =
        node("aten.relu.default", {{"self", tensor("x")}}, tensor("t")) + ", " +
        node("aten.einsum.default",
             {{"equation", R"({"as_string": ")" + equation + R"("})"},
              {"tensors", R"({"as_tensors": [)" + operands + "]}"}},
             tensor("v")) +
        ", " +
        node("aten.zero_.default", {{"self", tensor("t")}}, tensor("zero")) +
        ", " +
        node("aten.relu.default", {{"self", tensor("v")}}, tensor("relu"));
    for (const char *name : {"t", "v", "zero"})
      p.tensors += std::string(", \"") + name + "\": " + meta;
    return import(p);
  };
  EXPECT_THAT(written("ij->ij", R"({"name": "t"})"),
              HasSubstr("writes in place to memory of which 'v' is a view or a "
                        "copy"));
  EXPECT_THAT(written("ij,ij->ij", R"({"name": "t"}, {"name": "t"})"),
              Not(HasSubstr("error")));
}

TEST(PyTorch, WhatTheFileContradicts) {
  ProgramFile p = simpleProgram();
  p.weights = R"("w": {"path_name": "weight_0", "tensor_meta": )" +
              tensorMeta(3, fixed(4), fixed(1)) + "}";
  EXPECT_THAT(import(p), HasSubstr("tensor 'w' is int16[4], but the file says "
                                   "float32[4]"));
  EXPECT_THAT(import(p), HasSubstr("remedy: the file is damaged: export the "
                                   "program again"));
  p.weights = R"("w": {"path_name": "weight_0", "tensor_meta": )" +
              tensorMeta(7, fixed(1), fixed(1)) + "}";
  EXPECT_THAT(import(p),
              HasSubstr("tensor 'w' is float32[1], but the file says "
                        "float32[4]"));
  p = simpleProgram();
  p.ranges = R"("s0": {"min_val": 9, "max_val": 2})";
  EXPECT_THAT(import(p), HasSubstr("is said to be at least 9 and at most 2"));
  p.ranges = R"("s0": {"min_val": 9223372036854775807, "max_val": null})";
  EXPECT_THAT(import(p),
              HasSubstr("is said to be at least 9223372036854775807"));
  p.ranges = R"("s0": {"min_val": 2000000, "max_val": 4000000})";
  EXPECT_THAT(import(p), HasSubstr("max = 4000000 : i64, min = 2000000"));
}

TEST(PyTorch, RangesThatNobodyGave) {
  // Dim.AUTO leaves 2 as the least size: 0 and 1 are not traced.
  ProgramFile p = simpleProgram();
  p.ranges = R"("s0": {"min_val": 2, "max_val": null})";
  EXPECT_THAT(import(p), HasSubstr("min = 1 : i64, name = \"x_dim0\""));
}

TEST(PyTorch, SizesFromData) {
  ProgramFile p = simpleProgram();
  size_t at = p.tensors.find("\"relu\": ");
  p.tensors.replace(at, std::string::npos,
                    "\"relu\": " + tensorMeta(7, symbol("u0") + ", " + fixed(4),
                                              fixed(4) + ", " + fixed(1)));
  p.nodes = node(
      "aten.view.default",
      {{"self", tensor("x")}, {"size", R"({"as_sym_ints": [{"as_name": "u"},
                               {"as_int": 4}]})"}},
      tensor("relu"));
  EXPECT_THAT(import(p),
              HasSubstr("size 0 of its result is u0, which does not follow "
                        "from the sizes of inputs"));
}

TEST(PyTorch, DimensionsOfNumbers) {
  // Rows that look at a dimension do not find one.
  auto import1 =
      [](const std::string &target,
         const std::vector<std::pair<std::string, std::string>> &more) {
        ProgramFile p = simpleProgram();
        std::vector<std::pair<std::string, std::string>> arguments = {
            {"self", tensor("sum")}};
        arguments.insert(arguments.end(), more.begin(), more.end());
        p.nodes =
            node("aten.sum.default", {{"self", tensor("x")}}, tensor("sum")) +
            ", " + node(target, arguments, tensor("relu"));
        p.tensors += R"(, "sum": )" + tensorMeta(7, "", "");
        return import(p);
      };
  std::string zero = R"({"as_int": 0})", list = R"({"as_ints": [0]})";
  for (const char *target : {"aten.slice.Tensor", "aten.unbind.int",
                             "aten.chunk.default", "aten.glu.default"})
    EXPECT_THAT(import1(target, {{"dim", zero}}), HasSubstr("error")) << target;
  EXPECT_THAT(import1("aten.select.int", {{"dim", zero}, {"index", zero}}),
              HasSubstr("dimension 0 is out of range for 0 dimensions"));
  EXPECT_THAT(import1("aten.narrow.default",
                      {{"dim", zero}, {"start", zero}, {"length", zero}}),
              HasSubstr("dimension 0 is out of range for 0 dimensions"));
  EXPECT_THAT(import1("aten.roll.default", {{"shifts", list}, {"dims", list}}),
              HasSubstr("dimension 0 is out of range for 0 dimensions"));
  EXPECT_THAT(import1("aten.flip.default", {{"dims", list}}),
              HasSubstr("dimension 0 is out of range for 0 dimensions"));
}

TEST(PyTorch, PermutationsThatAreNone) {
  ProgramFile p = simpleProgram();
  for (const char *dims : {"[0]", "[0, 0]", "[0, 2]", "[0, 1, 1]"}) {
    p.nodes = node("aten.permute.default",
                   {{"self", tensor("x")},
                    {"dims", R"({"as_ints": )" + std::string(dims) + "}"}},
                   tensor("relu"));
    EXPECT_THAT(import(p), HasSubstr("error")) << dims;
  }
}
