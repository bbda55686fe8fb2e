// Loads and stores through every kind of map: strides, gathers, checks that
// vary.
#include "CpuRunner.h"

using namespace charonia::cpu;

namespace {

class CpuAccess : public CpuKernels {
protected:
  /// Copies a tile of `extents` through a load and a store; the maps take the
  /// axes and [pid, symbols...].
  struct Access {
    std::string map, shape, checks;
    int64_t rank;
    std::string attributes() const {
      return llvm::formatv("{{map = affine_map<{0}>, shape = affine_map<{1}>, "
                           "rank = {2} : i64, checks = array<i64{3}>}",
                           map, shape, rank,
                           checks.empty() ? "" : ": " + checks);
    }
  };
  void copy(llvm::StringRef tile, Access load, Access store,
            llvm::ArrayRef<Contents> contents, llvm::ArrayRef<int64_t> symbols,
            int64_t instances,
            llvm::ArrayRef<llvm::StringRef> types = {"f32", "f64", "i8", "i16",
                                                     "bf16", "i1", "i64"}) {
    for (llvm::StringRef type : types) {
      std::string arguments, values, indices = "index";
      for (size_t i = 0; i < symbols.size(); ++i) {
        arguments += llvm::formatv(", %s{0}: index", i);
        values += llvm::formatv(", %s{0}", i);
        indices += ", index";
      }
      expectSame(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<{0}>, %y: !tile.buffer<{0}>{1}) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %a = tile.load %x[%pid{2}] {3} : (!tile.buffer<{0}>, {4}) -> tensor<{5}x{0}>
  tile.store %a, %y[%pid{2}] {6} : tensor<{5}x{0}>, !tile.buffer<{0}>, {4}
  return
})",
                               type, arguments, values, load.attributes(),
                               indices, tile, store.attributes())
                     .str(),
                 contents, symbols, instances, 0);
    }
  }
};

TEST_P(CpuAccess, RaggedRows) {
  copy("4x23",
       {"(d0, d1)[s0, s1] -> (s0 * 4 + d0, d1)", "()[s0, s1] -> (s1, 23)", "0",
        2},
       {"(d0, d1)[s0, s1] -> (s0 * 4 + d0, d1)", "()[s0, s1] -> (s1, 23)", "0",
        2},
       {{13 * 23}, {13 * 23}}, {13}, 4);
}

TEST_P(CpuAccess, ChecksThatVaryInAVector) {
  copy("3x20",
       {"(d0, d1)[s0, s1, s2] -> (s0 * 3 + d0 - 2, d1 - 5)",
        "()[s0, s1, s2] -> (s1, s2)", "0, 1", 2},
       {"(d0, d1)[s0, s1, s2] -> (s0, d0, d1)", "()[s0, s1, s2] -> (5, 3, 20)",
        "", 3},
       {{11 * 9}, {5 * 60}}, {11, 9}, 5);
}

TEST_P(CpuAccess, PaddingBeforeTheRow) {
  for (int64_t padding : {1, 4, 7, 8, 9, 13, 16})
    copy("2x33",
         {llvm::formatv("(d0, d1)[s0, s1, s2] -> (s0 * 2 + d0 - 1, d1 - {0})",
                        padding),
          "()[s0, s1, s2] -> (s1, s2)", "0, 1", 2},
         {"(d0, d1)[s0, s1, s2] -> (s0, d0, d1)",
          "()[s0, s1, s2] -> (3, 2, 33)", "", 3},
         {{4 * 12}, {3 * 66}}, {4, 12}, 3, {"f32", "f64"});
}

// Past the caches where the address allows it, and as ever where it does not.
TEST_P(CpuAccess, StreamedResults) {
  auto image = compile(R"(
func.func @copy(%x: !tile.buffer<f32>, %y: !tile.buffer<f32> {tile.streamed}) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<(d0)[s0] -> (s0 * 40 + d0)>, shape = affine_map<()[s0] -> (200)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<40xf32>
  tile.store %a, %y[%pid] {map = affine_map<(d0)[s0] -> (s0 * 40 + d0)>, shape = affine_map<()[s0] -> (200)>, rank = 1 : i64, checks = array<i64>} : tensor<40xf32>, !tile.buffer<f32>, index
  return
})");
  ASSERT_TRUE(image);
  for (size_t shift : {0, 1, 7, 16}) {
    auto x = Buffer<float>::of(floats(200)), y = Buffer<float>(216);
    image->run({x.data(), y.data() + shift}, {}, 0, 5);
    for (size_t i = 0; i < 216; ++i)
      EXPECT_EQ(y[i], i >= shift && i - shift < 200 ? x[i - shift] : 0) << i;
    EXPECT_TRUE(y.intact());
  }
}

TEST_P(CpuAccess, StridesAndReversal) {
  copy("2x19",
       {"(d0, d1)[s0] -> (d0, d1 * 3 + s0)", "()[s0] -> (2, 60)", "1", 2},
       {"(d0, d1)[s0] -> (s0, d0, -d1 + 15)", "()[s0] -> (9, 2, 16)", "2", 3},
       {{120}, {9 * 32}}, {}, 9);
}

TEST_P(CpuAccess, TransposedStore) {
  copy("6x17", {"(d0, d1)[s0] -> (s0, d0, d1)", "()[s0] -> (3, 6, 17)", "", 3},
       {"(d0, d1)[s0] -> (s0, d1, d0)", "()[s0] -> (3, 17, 6)", "", 3},
       {{306}, {306}}, {}, 3);
}

TEST_P(CpuAccess, TransposedLoad) {
  copy("21x19",
       {"(d0, d1)[s0, s1, s2] -> (d1 + s0 * 19 - 3, d0 - 2)",
        "()[s0, s1, s2] -> (s1, s2)", "0, 1", 2},
       {"(d0, d1)[s0, s1, s2] -> (s0, d0, d1)", "()[s0, s1, s2] -> (3, 21, 19)",
        "", 3},
       {{44 * 17}, {3 * 399}}, {44, 17}, 3);
  copy("5x2x33",
       {"(d0, d1, d2)[s0] -> (d1 + s0, d2, d0)", "()[s0] -> (4, 33, 5)", "", 3},
       {"(d0, d1, d2)[s0] -> (s0, d2, d1, d0)", "()[s0] -> (3, 33, 2, 5)", "",
        4},
       {{4 * 165}, {3 * 330}}, {}, 3);
}

TEST_P(CpuAccess, FlattenedAxes) {
  // Elements of a padded image in the order of a flat index.
  copy("21",
       {"(d0)[s0, s1] -> ((s0 * 21 + d0) floordiv 35, ((s0 * 21 + d0) mod 35) "
        "floordiv 7 - 1, (s0 * 21 + d0) mod 7 - 1)",
        "()[s0, s1] -> (s1, 3, 5)", "0, 1, 2", 3},
       {"(d0)[s0, s1] -> (s0 * 21 + d0)", "()[s0, s1] -> (s1 * 35)", "0", 1},
       {{4 * 15}, {4 * 35}}, {4}, 7);
}

TEST_P(CpuAccess, DynamicExtents) {
  copy("5x18",
       {"(d0, d1)[s0, s1, s2] -> (s0 * 5 + d0, d1)",
        "()[s0, s1, s2] -> (s1, s2)", "0, 1", 2},
       {"(d0, d1)[s0, s1, s2] -> (d1, s0 * 5 + d0)",
        "()[s0, s1, s2] -> (s2, s1)", "0, 1", 2},
       {{12 * 14}, {12 * 14}}, {12, 14}, 3);
}

TEST_P(CpuAccess, DivisionByASymbol) {
  copy("18",
       {"(d0)[s0, s1, s2] -> ((s0 * 18 + d0) floordiv s2, (s0 * 18 + d0) mod "
        "s2)",
        "()[s0, s1, s2] -> (s1, s2)", "0", 2},
       {"(d0)[s0, s1, s2] -> ((s0 * 18 + d0) mod s2, (s0 * 18 + d0) floordiv "
        "s2)",
        "()[s0, s1, s2] -> (s2, s1)", "1", 2},
       {{8 * 9}, {8 * 9}}, {8, 9}, 4);
}

TEST_P(CpuAccess, UniformAndScalarTiles) {
  copy("3x10", {"(d0, d1)[s0] -> (s0, d0)", "()[s0] -> (4, 3)", "0", 2},
       {"(d0, d1)[s0] -> (s0, d0, d1)", "()[s0] -> (6, 3, 10)", "", 3},
       {{12}, {180}}, {}, 6);
  expectSame(R"(
func.func @kernel(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %a = tile.load %x[%pid] {map = affine_map<()[s0] -> (s0)>, shape = affine_map<()[s0] -> (5)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, index) -> tensor<f32>
  %b = arith.addf %a, %a : tensor<f32>
  %c = tile.broadcast %b {axes = array<i64>} : tensor<f32> -> tensor<2x3xf32>
  tile.store %c, %y[%pid] {map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, shape = affine_map<()[s0] -> (7, 2, 3)>, rank = 3 : i64, checks = array<i64>} : tensor<2x3xf32>, !tile.buffer<f32>, index
  return
})",
             {{5}, {42}}, {}, 7, 0);
}

TEST_P(CpuAccess, GatherAndScatterByTiles) {
  for (llvm::StringRef type : {"f32", "i8", "f64", "f16"})
    expectSame(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<{0}>, %rows: !tile.buffer<i64>, %columns: !tile.buffer<i32>, %y: !tile.buffer<{0}>, %z: !tile.buffer<{0}>) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %r = tile.load %rows[%pid] {{map = affine_map<(d0, d1)[s0] -> (s0 * 3 + d0)>, shape = affine_map<()[s0] -> (12)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i64>, index) -> tensor<3x1xi64>
  %ri = arith.index_cast %r : tensor<3x1xi64> to tensor<3x1xindex>
  %c = tile.load %columns[] {{map = affine_map<(d0, d1) -> (d1)>, shape = affine_map<() -> (19)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<i32>) -> tensor<1x19xi32>
  %ci = arith.index_cast %c : tensor<1x19xi32> to tensor<1x19xindex>
  %a = tile.load %x[%ri, %ci] {{map = affine_map<(d0, d1)[s0, s1] -> (s0, s1)>, shape = affine_map<()[s0, s1] -> (9, 30)>, rank = 2 : i64, checks = array<i64: 0, 1>} : (!tile.buffer<{0}>, tensor<3x1xindex>, tensor<1x19xindex>) -> tensor<3x19x{0}>
  %b = tile.load %x[%ri] {{map = affine_map<(d0, d1)[s0] -> (s0, d1)>, shape = affine_map<()[s0] -> (9, 30)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<{0}>, tensor<3x1xindex>) -> tensor<3x19x{0}>
  tile.store %a, %y[%pid] {{map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, shape = affine_map<()[s0] -> (4, 3, 19)>, rank = 3 : i64, checks = array<i64>} : tensor<3x19x{0}>, !tile.buffer<{0}>, index
  tile.store %b, %z[%ri, %pid] {{map = affine_map<(d0, d1)[s0, s1] -> (s0 * 12 + d0 + s1 * 3, d1)>, shape = affine_map<()[s0, s1] -> (108, 19)>, rank = 2 : i64, checks = array<i64: 0>} : tensor<3x19x{0}>, !tile.buffer<{0}>, tensor<3x1xindex>, index
  return
})",
                             type)
                   .str(),
               {{270}, {12, -2, 10}, {19, -3, 32}, {4 * 57}, {108 * 19}}, {}, 4,
               0);
}

TEST_P(CpuAccess, ScatterElements) {
  // Each lane to a place of its own, some outside.
  for (llvm::StringRef type : {"f32", "i8", "i64"})
    expectSame(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<{0}>, %y: !tile.buffer<{0}>, %n: index) attributes {{tile.kernel} {{
  %pid = tile.program_id : index
  %seven = arith.constant dense<7> : tensor<2x13xindex>
  %eleven = arith.constant dense<11> : tensor<2x13xindex>
  %i = tile.index [%pid] {{map = affine_map<(d0, d1)[s0] -> (d0 * 13 + d1 + s0)>} : (index) -> tensor<2x13xindex>
  %j = arith.muli %i, %seven : tensor<2x13xindex>
  %a = tile.load %x[%pid] {{map = affine_map<(d0, d1)[s0] -> (d0 * 13 + d1)>, shape = affine_map<()[s0] -> (26)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<{0}>, index) -> tensor<2x13x{0}>
  tile.store %a, %y[%j, %n] {{map = affine_map<(d0, d1)[s0, s1] -> (s0 - 20)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<2x13x{0}>, !tile.buffer<{0}>, tensor<2x13xindex>, index
  return
})",
                             type)
                   .str(),
               {{26}, {150}}, {150}, 1, 0);
}

TEST_P(CpuAccess, IndexAndInBounds) {
  expectSame(R"(
func.func @kernel(%y: !tile.buffer<index>, %z: !tile.buffer<i1>, %n: index) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %i = tile.index [%pid, %n] {map = affine_map<(d0, d1)[s0, s1] -> ((d1 * 5 + s0 - 7) floordiv 3 + (d0 * s1 - d1) mod 4)>} : (index, index) -> tensor<3x21xindex>
  %b = tile.in_bounds [%pid, %n] {map = affine_map<(d0, d1)[s0, s1] -> (d1 - 2, d0 + s0, (d1 + s0) floordiv 2)>, shape = affine_map<()[s0, s1] -> (s1, 5, 10)>} : (index, index) -> tensor<3x21xi1>
  tile.store %i, %y[%pid] {map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, shape = affine_map<()[s0] -> (5, 3, 21)>, rank = 3 : i64, checks = array<i64>} : tensor<3x21xindex>, !tile.buffer<index>, index
  tile.store %b, %z[%pid] {map = affine_map<(d0, d1)[s0] -> (s0, d0, d1)>, shape = affine_map<()[s0] -> (5, 3, 21)>, rank = 3 : i64, checks = array<i64>} : tensor<3x21xi1>, !tile.buffer<i1>, index
  return
})",
             {{315}, {315}}, {17}, 5, 0);
}

TEST_P(CpuAccess, LanesThatShareElementsInRowsThatAreNone) {
  for (int64_t columns : {1, 7, 8, 9, 20})
    copy("3x16",
         {"(d0, d1)[s0, s1, s2] -> (s0 * 3 + d0 - 2, (d1 + 1) floordiv 2 + s0 "
          "* 8 - 1, d1 + s0 * 16 - 1)",
          "()[s0, s1, s2] -> (s1, s2, s2 * 2)", "0, 2", 2},
         {"(d0, d1)[s0, s1, s2] -> (s0, d0, d1)",
          "()[s0, s1, s2] -> (5, 3, 16)", "", 3},
         {{size_t(11 * columns)}, {5 * 48}}, {11, columns}, 5);
}

/// An element that lanes share which lie on both sides of bounds without any
/// lane between: none is wanted, so there need not be any memory.
TEST_P(CpuAccess, NoLaneIsWantedOfThoseThatShareAnElement) {
  for (auto [checks, size] : {std::pair("100, s0", 3), {"s0, 100", 0}}) {
    auto image = compile(llvm::formatv(R"(
func.func @kernel(%x: !tile.buffer<f32>, %y: !tile.buffer<f32>, %n: index) attributes {{tile.kernel} {{
  %a = tile.load %x[%n] {{map = affine_map<(d0)[s0] -> ((d0 + 2) floordiv 8, d0 - 5, d0)>, shape = affine_map<()[s0] -> (2, {0})>, rank = 1 : i64, checks = array<i64: 1{1}>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %a, %y[] {{map = affine_map<(d0)[] -> (d0)>, shape = affine_map<()[] -> (16)>, rank = 1 : i64, checks = array<i64>} : tensor<16xf32>, !tile.buffer<f32>
  return
})",
                                       checks, size ? ", 2" : "")
                             .str());
    Buffer<float> y(16, 1.0f);
    image->run({reinterpret_cast<void *>(uintptr_t(64)), y.data()}, {size}, 0,
               1);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], 0) << i << " of " << checks;
  }
}

TEST_P(CpuAccess, RandomMaps) {
  // Random affine maps over a guarded buffer: what lies outside is checked.
  for (int trial = 0; trial < 40; ++trial) {
    int64_t rows = integer(1, 4), columns = integer(1, 40);
    auto term = [&] {
      std::string inner =
          llvm::formatv("d0 * {0} + d1 * {1} + s0 * {2} + s1 * {3} + {4}",
                        integer(-2, 3), integer(-2, 3), integer(0, 4),
                        integer(-1, 2), integer(-8, 8))
              .str();
      switch (integer(0, 3)) {
      case 0:
        return llvm::formatv("({0}) floordiv {1}", inner, integer(2, 9)).str();
      case 1:
        return llvm::formatv("({0}) mod {1}", inner, integer(2, 33)).str();
      default:
        return inner;
      }
    };
    Access load{llvm::formatv("(d0, d1)[s0, s1] -> ({0}, {1}, {2})", term(),
                              term(), term())
                    .str(),
                "()[s0, s1] -> (11, s1 * 2, 17)", "0, 1, 2", 2};
    Access store{
        llvm::formatv("(d0, d1)[s0, s1] -> (s0, d0, d1)").str(),
        llvm::formatv("()[s0, s1] -> (6, {0}, {1})", rows, columns).str(), "",
        3};
    copy(llvm::formatv("{0}x{1}", rows, columns).str(), load, store,
         {{11 * 14}, {size_t(6 * rows * columns)}}, {7}, 6,
         trial % 2 ? llvm::StringRef("f32") : llvm::StringRef("i8"));
  }
}

CHARONIA_CPU_SUITE(CpuAccess);
} // namespace
