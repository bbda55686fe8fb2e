// RUN: charonia-opt %s -form-kernels -emit-tiles -cse -canonicalize --split-input-file | FileCheck %s
// RUN: charonia-opt %s -form-kernels -emit-tiles=target=sm_90a -cse -canonicalize --split-input-file -mlir-print-local-scope | FileCheck %s --check-prefix=GPU
// The second result is stored at its own coordinates, whatever the first is tiled by.
// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0)[s0] -> (d0 + s0 * 128)>
// CHECK-DAG:   #[[SECOND:.*]] = affine_map<(d0)[s0] -> ((d0 + s0 * 128) mod 60, (d0 + s0 * 128) floordiv 60, d0 + s0 * 128)>
// CHECK-LABEL: func.func @exp_mul
// CHECK:         tile.store {{.*}}map = #[[FIRST]]
// CHECK:         tile.store {{.*}}map = #[[SECOND]]
func.func @permuted(%x: tensor<40x60xf32>, %y: tensor<60x40xf32>) -> (tensor<40x60xf32>, tensor<60x40xf32>) {
  %0 = graph.exp %x : (tensor<40x60xf32>) -> tensor<40x60xf32>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<40x60xf32>) -> tensor<60x40xf32>
  %2 = graph.mul %1, %y : (tensor<60x40xf32>, tensor<60x40xf32>) -> tensor<60x40xf32>
  return %0, %2 : tensor<40x60xf32>, tensor<60x40xf32>
}

// -----

// A row value is stored once for its row, as a tile without axes.
// CHECK-LABEL: func.func @reduce_sub
// CHECK:         tile.store
// CHECK:         tile.store {{.*}}tensor<f32>
func.func @row(%x: tensor<7x33xf32>) -> (tensor<7x1xf32>, tensor<7x33xf32>) {
  %0 = graph.reduce max %x {axes = array<i64: 1>, keepdims} : (tensor<7x33xf32>) -> tensor<7x1xf32>
  %1 = graph.sub %x, %0 : (tensor<7x33xf32>, tensor<7x1xf32>) -> tensor<7x33xf32>
  return %0, %1 : tensor<7x1xf32>, tensor<7x33xf32>
}

// -----

// Of a tile that has more columns than a row, what lies past the row's end is no element of the next one: the flat result is stored within both.
// GPU-LABEL: func.func @add_sqrt
// GPU:         tile.store {{.*}}checks = array<i64: 0, 1>, {{.*}}shape = affine_map<{{.*}} -> (13, 96)>
// GPU:         tile.store {{.*}}checks = array<i64: 0, 1, 2>, {{.*}}shape = affine_map<{{.*}} -> (1248, 13, 96)>
func.func @flat(%x: tensor<13x96xf32>, %y: tensor<96xf32>) -> (tensor<13x96xf32>, tensor<1248xf32>) {
  %0 = graph.add %x, %y : (tensor<13x96xf32>, tensor<96xf32>) -> tensor<13x96xf32>
  %1 = graph.reshape %0 : (tensor<13x96xf32>) -> tensor<1248xf32>
  %2 = graph.sqrt %1 : (tensor<1248xf32>) -> tensor<1248xf32>
  return %0, %2 : tensor<13x96xf32>, tensor<1248xf32>
}
