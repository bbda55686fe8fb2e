// On a GPU small sums are computed again by each program instance of what reads
// them, instead of in kernels of their own.
// RUN: charonia-opt %s --form-kernels=instances=132 --verify-kernels --split-input-file | FileCheck %s
// RUN: charonia-opt %s --form-kernels --verify-kernels --split-input-file | FileCheck %s --check-prefix=CPU

// Squeeze and excite: the second product needs a part of its columns in each
// tile of the image, the first one all of few.
// CHECK-LABEL: func.func @excite
// CHECK:         graph.kernel "matmul_max_matmul_sigmoid_mul"
// CHECK-NOT:     graph.kernel
// CPU-LABEL: func.func @excite
// CPU:         graph.kernel "matmul_max"
// CPU:         graph.kernel "matmul_sigmoid"
// CPU:         graph.kernel "mul"
func.func @excite(%x: tensor<784x96xf16>, %mean: tensor<1x96xf16>) -> tensor<784x96xf16> {
  %zero = graph.constant dense<0.0> : tensor<f16>
  %w = graph.weight "w" : tensor<96x4xf16>
  %v = graph.weight "v" : tensor<4x96xf16>
  %0 = graph.matmul %mean, %w : (tensor<1x96xf16>, tensor<96x4xf16>) -> tensor<1x4xf16>
  %1 = graph.max %0, %zero : (tensor<1x4xf16>, tensor<f16>) -> tensor<1x4xf16>
  %2 = graph.matmul %1, %v : (tensor<1x4xf16>, tensor<4x96xf16>) -> tensor<1x96xf16>
  %3 = graph.sigmoid %2 : (tensor<1x96xf16>) -> tensor<1x96xf16>
  %4 = graph.mul %x, %3 : (tensor<784x96xf16>, tensor<1x96xf16>) -> tensor<784x96xf16>
  return %4 : tensor<784x96xf16>
}

// -----

// 48 x 1152 weights again in each instance would take longer than a kernel; of
// the second product a tile needs a few columns.
// CHECK-LABEL: func.func @large
// CHECK:         graph.kernel "matmul_max"
// CHECK:         graph.kernel "matmul_sigmoid_mul"
// CHECK-NOT:     graph.kernel
func.func @large(%x: tensor<49x1152xf16>, %mean: tensor<1x1152xf16>) -> tensor<49x1152xf16> {
  %zero = graph.constant dense<0.0> : tensor<f16>
  %w = graph.weight "w" : tensor<1152x48xf16>
  %v = graph.weight "v" : tensor<48x1152xf16>
  %0 = graph.matmul %mean, %w : (tensor<1x1152xf16>, tensor<1152x48xf16>) -> tensor<1x48xf16>
  %1 = graph.max %0, %zero : (tensor<1x48xf16>, tensor<f16>) -> tensor<1x48xf16>
  %2 = graph.matmul %1, %v : (tensor<1x48xf16>, tensor<48x1152xf16>) -> tensor<1x1152xf16>
  %3 = graph.sigmoid %2 : (tensor<1x1152xf16>) -> tensor<1x1152xf16>
  %4 = graph.mul %x, %3 : (tensor<49x1152xf16>, tensor<1x1152xf16>) -> tensor<49x1152xf16>
  return %4 : tensor<49x1152xf16>
}

// -----

// The last step of a sum joins the product of one row that reads it; with
// several rows products are of tiles, which copy their operands from memory.
// CHECK-LABEL: func.func @last_step
// CHECK:         graph.kernel "matmul_reduce"
// CHECK:         graph.kernel "reduce"
// CHECK:         graph.kernel "matmul"
func.func @last_step(%x: tensor<7x240xf32>, %y: tensor<7x2x240xf32>) -> (tensor<1x10xf32>, tensor<2x10xf32>) {
  %w = graph.weight "w" : tensor<240x10xf32>
  %0 = graph.reduce sum %x {axes = array<i64: 0>, keepdims} : (tensor<7x240xf32>) -> tensor<1x240xf32>
  %1 = graph.matmul %0, %w : (tensor<1x240xf32>, tensor<240x10xf32>) -> tensor<1x10xf32>
  %2 = graph.reduce sum %y {axes = array<i64: 0>} : (tensor<7x2x240xf32>) -> tensor<2x240xf32>
  %3 = graph.matmul %2, %w : (tensor<2x240xf32>, tensor<240x10xf32>) -> tensor<2x10xf32>
  return %1, %3 : tensor<1x10xf32>, tensor<2x10xf32>
}

// -----

// What others read too, or is returned, is stored.
// CHECK-LABEL: func.func @shared
// CHECK:         graph.kernel "matmul"
// CHECK:         graph.kernel "mul"
func.func @shared(%x: tensor<784x96xf16>, %y: tensor<1x4xf16>) -> (tensor<784x96xf16>, tensor<1x96xf16>) {
  %v = graph.weight "v" : tensor<4x96xf16>
  %0 = graph.matmul %y, %v : (tensor<1x4xf16>, tensor<4x96xf16>) -> tensor<1x96xf16>
  %1 = graph.mul %x, %0 : (tensor<784x96xf16>, tensor<1x96xf16>) -> tensor<784x96xf16>
  return %1, %0 : tensor<784x96xf16>, tensor<1x96xf16>
}

// -----

// A window, a sum and a product of several rows have one anchor.
// CHECK-LABEL: func.func @anchors
// CHECK:         graph.kernel "reduce
// CHECK:         graph.kernel "reduce
// CHECK:         graph.kernel "matmul
func.func @anchors(%x: tensor<8x64x32xf32>, %y: tensor<64x16xf32>) -> tensor<64x32xf32> {
  %w = graph.weight "w" : tensor<16x32xf32>
  %0 = graph.reduce sum %x {axes = array<i64: 0>} : (tensor<8x64x32xf32>) -> tensor<64x32xf32>
  %1 = graph.reduce sum %0 {axes = array<i64: 0>, keepdims} : (tensor<64x32xf32>) -> tensor<1x32xf32>
  %2 = graph.matmul %y, %w : (tensor<64x16xf32>, tensor<16x32xf32>) -> tensor<64x32xf32>
  %3 = graph.add %2, %1 : (tensor<64x32xf32>, tensor<1x32xf32>) -> tensor<64x32xf32>
  return %3 : tensor<64x32xf32>
}

// -----

// Nobody knows how many terms an open dimension has, be one optimized for.
// CHECK-LABEL: func.func @open_terms
// CHECK:         graph.kernel "reduce"
// CHECK:         graph.kernel "sub"
module attributes {graph.symbols = [{name = "n", min = 1, opt = 1, max = 1048576, divisor = 1}]} {
  func.func @open_terms(%x: tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>, %y: tensor<4096x64xf32>) -> tensor<4096x64xf32> {
    %0 = graph.reduce sum %x {axes = array<i64: 0>, keepdims} : (tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>) -> tensor<1x64xf32>
    %1 = graph.sub %y, %0 : (tensor<4096x64xf32>, tensor<1x64xf32>) -> tensor<4096x64xf32>
    return %1 : tensor<4096x64xf32>
  }
}
