// RUN: charonia-opt %s -refine-reductions -simplify-views -assign-layouts -simplify-views -canonicalize -mlir-print-local-scope -split-input-file | FileCheck %s

// Groups of channels, as exporters write them, behind an image with channels last: the
// merged axis parts, and the transpose sinks through the reshapes to where it cancels.
// CHECK-LABEL: @group
// CHECK:      %[[R:.*]] = graph.reshape %arg0 : (tensor<1x32x32x96xf32>) -> tensor<1x32x32x8x12xf32>
// CHECK-NEXT: %[[N:.*]] = graph.normalize %[[R]] {axes = array<i64: 1, 2, 4>
// CHECK-NEXT: %[[B:.*]] = graph.reshape %[[N]] : (tensor<1x32x32x8x12xf32>) -> tensor<1x32x32x96xf32>
// CHECK-NOT:  graph.transpose
// CHECK:      graph.mul %[[B]]
// CHECK-NEXT: return
func.func @group(%x: tensor<1x32x32x96xf32>) -> tensor<1x32x32x96xf32> {
  %scale = graph.weight "s" : tensor<96x1x1xf32>
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x32x32x96xf32>) -> tensor<1x96x32x32xf32>
  %1 = graph.reshape %0 : (tensor<1x96x32x32xf32>) -> tensor<1x8x12288xf32>
  %2 = graph.normalize %1 {axes = array<i64: 2>, epsilon = 1.0e-5 : f64} : (tensor<1x8x12288xf32>) -> tensor<1x8x12288xf32>
  %3 = graph.reshape %2 : (tensor<1x8x12288xf32>) -> tensor<1x96x32x32xf32>
  %4 = graph.mul %3, %scale : (tensor<1x96x32x32xf32>, tensor<96x1x1xf32>) -> tensor<1x96x32x32xf32>
  %5 = graph.transpose %4 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x96x32x32xf32>) -> tensor<1x32x32x96xf32>
  return %5 : tensor<1x32x32x96xf32>
}

// -----

// Sizes that are not known divide as expressions.
// CHECK-LABEL: @symbolic
// CHECK: graph.reduce sum %{{.*}} {axes = array<i64: 2, 3, 4>, keepdims}
// CHECK-SAME: (tensor<1x8x12x?x?xf32, affine_map<()[s0, s1] -> (1, 8, 12, s0, s1)>>)
#image = affine_map<()[s0, s1] -> (1, 96, s0, s1)>
#rows = affine_map<()[s0, s1] -> (1, 8, s0 * s1 * 12)>
module attributes {graph.symbols = [{name = "h", min = 1, opt = 32, max = 64, divisor = 1}, {name = "w", min = 1, opt = 32, max = 64, divisor = 1}]} {
  func.func @symbolic(%x: tensor<1x96x?x?xf32, #image>) -> tensor<1x8x1xf32> {
    %0 = graph.reshape %x : (tensor<1x96x?x?xf32, #image>) -> tensor<1x8x?xf32, #rows>
    %1 = graph.reduce sum %0 {axes = array<i64: 2>, keepdims} : (tensor<1x8x?xf32, #rows>) -> tensor<1x8x1xf32>
    return %1 : tensor<1x8x1xf32>
  }
}

// -----

// Boundaries that do not nest stay as they are.
// CHECK-LABEL: @crossing
// CHECK: graph.reshape %arg0 : (tensor<6x10xf32>) -> tensor<4x15xf32>
// CHECK: graph.reduce max %{{.*}} {axes = array<i64: 1>}
func.func @crossing(%x: tensor<6x10xf32>) -> tensor<4xf32> {
  %0 = graph.reshape %x : (tensor<6x10xf32>) -> tensor<4x15xf32>
  %1 = graph.reduce max %0 {axes = array<i64: 1>} : (tensor<4x15xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Heads that a transpose has moved between rows and columns stay where they are.
// CHECK-LABEL: @heads
// CHECK: graph.transpose %arg0 {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: return
func.func @heads(%x: tensor<1x12x128x64xf32>) -> tensor<1x128x768xf32> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x12x128x64xf32>) -> tensor<1x128x12x64xf32>
  %1 = graph.reshape %0 : (tensor<1x128x12x64xf32>) -> tensor<1x128x768xf32>
  return %1 : tensor<1x128x768xf32>
}
