// RUN: charonia-opt %s | charonia-opt | FileCheck %s
// Types with symbolic dimensions, and rules that infer them.

// CHECK: graph.symbols
module attributes {graph.symbols = [{name = "batch", min = 1, opt = 8, max = 64, divisor = 1},
                                    {name = "seq", min = 1, opt = 128, max = 512, divisor = 1}]} {
  // CHECK-LABEL: @main
  func.func @main(%x: tensor<?x?x768xf16, affine_map<()[s0, s1] -> (s0, s1, 768)>>) -> tensor<?x12x?x?xf16, affine_map<()[s0, s1] -> (s0, 12, s1, s1)>> {
    // CHECK: graph.weight "w" : tensor<768x768xf16>
    %w = graph.weight "w" : tensor<768x768xf16>
    // CHECK: graph.matmul
    %0 = graph.matmul %x, %w : (tensor<?x?x768xf16, affine_map<()[s0, s1] -> (s0, s1, 768)>>, tensor<768x768xf16>) -> tensor<?x?x768xf16, affine_map<()[s0, s1] -> (s0, s1, 768)>>
    // CHECK: graph.reshape
    %1 = graph.reshape %0 : (tensor<?x?x768xf16, affine_map<()[s0, s1] -> (s0, s1, 768)>>) -> tensor<?x?x12x64xf16, affine_map<()[s0, s1] -> (s0, s1, 12, 64)>>
    // CHECK: graph.transpose {{.*}} {permutation = array<i64: 0, 2, 1, 3>}
    %q = graph.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x?x12x64xf16, affine_map<()[s0, s1] -> (s0, s1, 12, 64)>>) -> tensor<?x12x?x64xf16, affine_map<()[s0, s1] -> (s0, 12, s1, 64)>>
    %k = graph.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<?x?x12x64xf16, affine_map<()[s0, s1] -> (s0, s1, 12, 64)>>) -> tensor<?x12x64x?xf16, affine_map<()[s0, s1] -> (s0, 12, 64, s1)>>
    %s = graph.matmul %q, %k : (tensor<?x12x?x64xf16, affine_map<()[s0, s1] -> (s0, 12, s1, 64)>>, tensor<?x12x64x?xf16, affine_map<()[s0, s1] -> (s0, 12, 64, s1)>>) -> tensor<?x12x?x?xf16, affine_map<()[s0, s1] -> (s0, 12, s1, s1)>>
    // CHECK: graph.softmax {{.*}} {axis = 3 : i64}
    %p = graph.softmax %s {axis = 3 : i64} : (tensor<?x12x?x?xf16, affine_map<()[s0, s1] -> (s0, 12, s1, s1)>>) -> tensor<?x12x?x?xf16, affine_map<()[s0, s1] -> (s0, 12, s1, s1)>>
    return %p : tensor<?x12x?x?xf16, affine_map<()[s0, s1] -> (s0, 12, s1, s1)>>
  }
  // CHECK-LABEL: @pool
  func.func @pool(%x: tensor<1x4x?x10xf32, affine_map<()[s0] -> (1, 4, s0, 10)>>) -> tensor<1x4x?x5xf32, affine_map<()[s0] -> (1, 4, (s0 + 1) floordiv 2, 5)>> {
    // CHECK: graph.pool max
    %0 = graph.pool max %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}
      : (tensor<1x4x?x10xf32, affine_map<()[s0] -> (1, 4, s0, 10)>>) -> tensor<1x4x?x5xf32, affine_map<()[s0] -> (1, 4, (s0 + 1) floordiv 2, 5)>>
    return %0 : tensor<1x4x?x5xf32, affine_map<()[s0] -> (1, 4, (s0 + 1) floordiv 2, 5)>>
  }
  // Windows must not start in the padding on the right, even when rounded up.
  // CHECK-LABEL: @ceil
  func.func @ceil(%x: tensor<1x4x5x5xf32>) -> tensor<1x4x3x3xf32> {
    %0 = graph.pool average %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 1, 1>, dilations = array<i64: 1, 1>, ceil_mode}
      : (tensor<1x4x5x5xf32>) -> tensor<1x4x3x3xf32>
    return %0 : tensor<1x4x3x3xf32>
  }
}
