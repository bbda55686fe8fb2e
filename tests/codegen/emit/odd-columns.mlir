// RUN: charonia-opt %s -emit-tiles=target=x86-64-v3 -cse -canonicalize -mlir-print-local-scope | FileCheck %s

// What is summed for neighbours in a row lies side by side, for the last one of a row and the
// first one of the next apart: a register of both would be gathered.
// CHECK-LABEL: func.func @odd(
// CHECK:         tile.load %arg0[%{{.*}}, %{{.*}}] {{{.*}}map = affine_map<(d0)[s0, s1] -> (s0, s1, d0)>{{.*}} -> tensor<33xf32>

// Registers that end with a row are not cut there.
// CHECK-LABEL: func.func @whole(
// CHECK:         tile.load %arg0{{.*}}d0 floordiv 40{{.*}} -> tensor<80xf32>

// Nor are those of two halves.
// CHECK-LABEL: func.func @halves(
// CHECK:         tile.load %arg0{{.*}}d0 floordiv 12{{.*}} -> tensor<{{32|48|64}}xf32>

// Behind the last dimension that is summed all is one run, however long a row of it is.
// CHECK-LABEL: func.func @run(
// CHECK:         tile.load %arg0{{.*}}map = affine_map<(d0)[s0, s1] -> (s1, d0 + s0 * 64)>{{.*}} -> tensor<64xf32>
module {
  func.func @main(%x: tensor<32x64x33xf32>, %y: tensor<32x64x40xf32>, %w: tensor<32x64x12xf32>, %z: tensor<64x32x33xf32>)
      -> (tensor<32x33xf32>, tensor<32x40xf32>, tensor<32x33xf32>) {
    %0 = graph.kernel "odd" (%x) : (tensor<32x64x33xf32>) -> tensor<32x33xf32> {
    ^bb0(%a: tensor<32x64x33xf32>):
      %1 = graph.reduce sum %a {axes = array<i64: 1>} : (tensor<32x64x33xf32>) -> tensor<32x33xf32>
      graph.yield %1 : tensor<32x33xf32>
    }
    %1 = graph.kernel "whole" (%y) : (tensor<32x64x40xf32>) -> tensor<32x40xf32> {
    ^bb0(%a: tensor<32x64x40xf32>):
      %2 = graph.reduce sum %a {axes = array<i64: 1>} : (tensor<32x64x40xf32>) -> tensor<32x40xf32>
      graph.yield %2 : tensor<32x40xf32>
    }
    graph.kernel "halves" (%w) : (tensor<32x64x12xf32>) -> tensor<32x12xf32> {
    ^bb0(%a: tensor<32x64x12xf32>):
      %4 = graph.reduce sum %a {axes = array<i64: 1>} : (tensor<32x64x12xf32>) -> tensor<32x12xf32>
      graph.yield %4 : tensor<32x12xf32>
    }
    %2 = graph.kernel "run" (%z) : (tensor<64x32x33xf32>) -> tensor<32x33xf32> {
    ^bb0(%a: tensor<64x32x33xf32>):
      %3 = graph.reduce sum %a {axes = array<i64: 0>} : (tensor<64x32x33xf32>) -> tensor<32x33xf32>
      graph.yield %3 : tensor<32x33xf32>
    }
    return %0, %1, %2 : tensor<32x33xf32>, tensor<32x40xf32>, tensor<32x33xf32>
  }
}
