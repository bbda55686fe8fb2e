// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

// An input that is dense along another dimension than the result is read in blocks of
// some registers both ways; h and w are one dimension of them.
// CHECK-LABEL: func.func @transpose(
// CHECK:         tile.grid = affine_map<() -> (24)>
// CHECK:         tile.load %arg0
// CHECK-SAME:      map = affine_map<(d0, d1)[s0, s1] -> (d1 + s0 * 16, d0 + s1 * 16)>
// CHECK-SAME:      -> tensor<16x16xf32>
module {
  func.func @main(%x: tensor<1x96x8x8xf32>) -> tensor<1x8x8x96xf32> {
    %0 = graph.kernel "transpose" (%x) : (tensor<1x96x8x8xf32>) -> tensor<1x8x8x96xf32> {
    ^bb0(%a: tensor<1x96x8x8xf32>):
      %1 = graph.transpose %a {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x96x8x8xf32>) -> tensor<1x8x8x96xf32>
      graph.yield %1 : tensor<1x8x8x96xf32>
    }
    return %0 : tensor<1x8x8x96xf32>
  }
}

// -----

// A check that is the same for a whole tile stays one for the tile when coordinates
// join: rows of a concatenation are not chosen element by element.
// CHECK-LABEL: func.func @concat(
// CHECK:         tile.load %arg0
// CHECK-SAME:      checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (d0 + s0 * 128 + s1 * 1024, s1 * 4 + s0 floordiv 2)>
// CHECK-SAME:      rank = 1 : i64, shape = affine_map<()[s0, s1] -> (768, 3)>
module {
  func.func @main(%x: tensor<3x16x16xf32>, %y: tensor<5x16x16xf32>) -> tensor<2x1024xf32> {
    %0 = graph.kernel "concat" (%x, %y) : (tensor<3x16x16xf32>, tensor<5x16x16xf32>) -> tensor<2x1024xf32> {
    ^bb0(%a: tensor<3x16x16xf32>, %b: tensor<5x16x16xf32>):
      %1 = graph.concat %a, %b {axis = 0 : i64} : (tensor<3x16x16xf32>, tensor<5x16x16xf32>) -> tensor<8x16x16xf32>
      %2 = graph.reshape %1 : (tensor<8x16x16xf32>) -> tensor<2x1024xf32>
      graph.yield %2 : tensor<2x1024xf32>
    }
    return %0 : tensor<2x1024xf32>
  }
}

// -----

// Parts of a concatenation that are dense along the channels, while the result is along the row: blocks again, of 16 of the 400 positions.
// CHECK-LABEL: func.func @transposed_parts(
// CHECK:         tile.grid = affine_map<() -> (200)>
// CHECK:         tile.load %arg1
// CHECK-SAME:      -> tensor<16x16xf32>
module {
  func.func @main(%x: tensor<1x64x20x20xf32>, %y: tensor<1x20x20x64xf32>) -> tensor<1x128x20x20xf32> {
    %0 = graph.kernel "transposed_parts" (%x, %y) : (tensor<1x64x20x20xf32>, tensor<1x20x20x64xf32>) -> tensor<1x128x20x20xf32> {
    ^bb0(%a: tensor<1x64x20x20xf32>, %b: tensor<1x20x20x64xf32>):
      %1 = graph.transpose %b {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x20x20x64xf32>) -> tensor<1x64x20x20xf32>
      %2 = graph.concat %a, %1 {axis = 1 : i64} : (tensor<1x64x20x20xf32>, tensor<1x64x20x20xf32>) -> tensor<1x128x20x20xf32>
      graph.yield %2 : tensor<1x128x20x20xf32>
    }
    return %0 : tensor<1x128x20x20xf32>
  }
}

// -----

// A last dimension that is shorter than a register takes the one in front of it, of which so many fill one.
// CHECK-LABEL: func.func @interleaved(
// CHECK:         tile.load %arg0
// CHECK-SAME:      -> tensor<16x16xf32>
module {
  func.func @main(%x: tensor<64x64x2x2x32xf32>) -> tensor<32x64x2x64x2xf32> {
    %0 = graph.kernel "interleaved" (%x) : (tensor<64x64x2x2x32xf32>) -> tensor<32x64x2x64x2xf32> {
    ^bb0(%a: tensor<64x64x2x2x32xf32>):
      %1 = graph.transpose %a {permutation = array<i64: 4, 0, 2, 1, 3>} : (tensor<64x64x2x2x32xf32>) -> tensor<32x64x2x64x2xf32>
      graph.yield %1 : tensor<32x64x2x64x2xf32>
    }
    return %0 : tensor<32x64x2x64x2xf32>
  }
}

// -----

// Three rows of the result are picked from the same lines of memory: a tile has all of them.
// CHECK-LABEL: func.func @planes(
// CHECK:         tile.load %arg0{{.*}} -> tensor<3x64xf32>
// Three interleaved: tiles begin with a place and with a register, so that each register has the same parts
// of places in all of them.
// CHECK-LABEL: func.func @places(
// CHECK:         tile.load %arg0
// CHECK-SAME:      map = affine_map<(d0)[s0] -> (d0 mod 3, d0 floordiv 3 + s0 * 48)>
// CHECK-SAME:      -> tensor<144xf32>
module {
  func.func @main(%x: tensor<9600x3xf32>, %y: tensor<3x9600xf32>) -> (tensor<3x9600xf32>, tensor<9600x3xf32>) {
    %0 = graph.kernel "planes" (%x) : (tensor<9600x3xf32>) -> tensor<3x9600xf32> {
    ^bb0(%a: tensor<9600x3xf32>):
      %1 = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<9600x3xf32>) -> tensor<3x9600xf32>
      graph.yield %1 : tensor<3x9600xf32>
    }
    %2 = graph.kernel "places" (%y) : (tensor<3x9600xf32>) -> tensor<9600x3xf32> {
    ^bb0(%a: tensor<3x9600xf32>):
      %3 = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<3x9600xf32>) -> tensor<9600x3xf32>
      graph.yield %3 : tensor<9600x3xf32>
    }
    return %0, %2 : tensor<3x9600xf32>, tensor<9600x3xf32>
  }
}
