// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -cse -canonicalize -split-input-file -mlir-print-local-scope | FileCheck %s

// Tiles of 128 begin at multiples of 128, and so does each operand: which one a tile is
// from is the same for all of its elements.
// CHECK-LABEL: func.func @concat(
// CHECK: tile.load %arg0{{.*}}map = affine_map<(d0)[s0, s1] -> (s1, d0 + s0 * 128, s0 * 128)>
// CHECK: tile.load %arg1{{.*}}map = affine_map<(d0)[s0, s1] -> (s1, d0 + s0 * 128 - 1024, s0 * 128 - 1024)>
// CHECK: tile.in_bounds{{.*}}map = affine_map<(d0)[s0] -> (s0 * 128 - 1024)>
func.func @main(%a: tensor<64x1024xf32>, %b: tensor<64x1024xf32>) -> tensor<64x2048xf32> {
  %0 = graph.kernel "concat"(%a, %b) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x2048xf32> {
  ^bb0(%x: tensor<64x1024xf32>, %y: tensor<64x1024xf32>):
    %1 = graph.concat %x, %y {axis = 1 : i64} : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x2048xf32>
    graph.yield %1 : tensor<64x2048xf32>
  }
  return %0 : tensor<64x2048xf32>
}

// -----

// What is behind the axis is one run of memory in both operands and in the result: tiles
// go through images, not through their rows.
// CHECK-LABEL: func.func @images(
// CHECK: tile.load %arg0{{.*}}d0 + s{{[0-9]+}})
// CHECK-SAME: tensor<128xf32>
// CHECK: tile.store{{.*}}shape = affine_map<()[s0, s1, s2, s3{{.*}}] -> ({{.*}}, s1 * s2)>
module attributes {graph.symbols = [
  {name = "c", min = 1 : i64, opt = 64 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "h", min = 1 : i64, opt = 40 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 40 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @main(%a: tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, s1, s2)>>) -> tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0 * 2, s1, s2)>> {
    %0 = graph.kernel "images"(%a) : (tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, s1, s2)>>) -> tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0 * 2, s1, s2)>> {
    ^bb0(%x: tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, s1, s2)>>):
      %1 = graph.concat %x, %x {axis = 0 : i64} : (tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, s1, s2)>>, tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0, s1, s2)>>) -> tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0 * 2, s1, s2)>>
      graph.yield %1 : tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0 * 2, s1, s2)>>
    }
    return %0 : tensor<?x?x?xf32, affine_map<()[s0, s1, s2] -> (s0 * 2, s1, s2)>>
  }
}

// -----

// Nearest elements of an image twice as large are repeated ones.
// CHECK-LABEL: func.func @twice(
// CHECK-NOT: math.floor
// CHECK: tile.load %arg0{{.*}}floordiv 2
func.func @main(%a: tensor<64x96xf32>) -> tensor<64x192xf32> {
  %0 = graph.kernel "twice"(%a) : (tensor<64x96xf32>) -> tensor<64x192xf32> {
  ^bb0(%x: tensor<64x96xf32>):
    %1 = graph.resize nearest %x {axes = array<i64: 1>, scales = array<f64: 2.0>, coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = -0.75 : f64} : (tensor<64x96xf32>) -> tensor<64x192xf32>
    graph.yield %1 : tensor<64x192xf32>
  }
  return %0 : tensor<64x192xf32>
}

// -----

// Between elements, too, lanes lie a known way apart; at the ends weights say what counts.
// CHECK-LABEL: func.func @between(
// CHECK-NOT: math.floor
// CHECK: tile.load %arg0{{.*}}floordiv 2
// CHECK: tile.load %arg0{{.*}}floordiv 2
func.func @main(%a: tensor<64x96xf32>) -> tensor<64x192xf32> {
  %0 = graph.kernel "between"(%a) : (tensor<64x96xf32>) -> tensor<64x192xf32> {
  ^bb0(%x: tensor<64x96xf32>):
    %1 = graph.resize linear %x {axes = array<i64: 1>, scales = array<f64: 2.0>, coordinates = 0 : i32, nearest = 0 : i32, cubic_coeff = -0.75 : f64} : (tensor<64x96xf32>) -> tensor<64x192xf32>
    graph.yield %1 : tensor<64x192xf32>
  }
  return %0 : tensor<64x192xf32>
}
