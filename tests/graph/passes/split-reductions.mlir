// RUN: charonia-opt %s -split-reductions -split-input-file -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -split-reductions=cut-open-runs -split-input-file -mlir-print-local-scope | FileCheck %s --check-prefix=CUT

// Rows that are no runs of memory: statistics in steps, then an expression.
// CHECK-LABEL: @groups
// CHECK:     %[[P:.*]] = graph.reduce sum %arg0 {axes = array<i64: 2>, keepdims} : (tensor<1x32x32x8x12xf32>) -> tensor<1x32x1x8x12xf32>
// CHECK:     %[[S:.*]] = graph.reduce sum %[[P]] {axes = array<i64: 1, 2, 4>, keepdims} : {{.*}} -> tensor<1x1x1x8x1xf32>
// CHECK:     %[[M:.*]] = graph.div %[[S]]
// CHECK:     %[[C:.*]] = graph.sub %arg0, %[[M]]
// CHECK:     graph.mul %[[C]], %[[C]]
// CHECK:     graph.rsqrt
// CHECK-NOT: graph.normalize
func.func @groups(%x: tensor<1x32x32x8x12xf32>) -> tensor<1x32x32x8x12xf32> {
  %0 = graph.normalize %x {axes = array<i64: 1, 2, 4>, epsilon = 1.0e-5 : f64} : (tensor<1x32x32x8x12xf32>) -> tensor<1x32x32x8x12xf32>
  return %0 : tensor<1x32x32x8x12xf32>
}

// -----

// Sums of a small type are of f32.
// CHECK-LABEL: @half
// CHECK: graph.cast %arg0 {to = f32} : (tensor<1x32x32x8x12xf16>) -> tensor<1x32x32x8x12xf32>
// CHECK: graph.cast %{{.*}} {to = f16} : (tensor<1x32x32x8x12xf32>) -> tensor<1x32x32x8x12xf16>
// CHECK-NEXT: return
func.func @half(%x: tensor<1x32x32x8x12xf16>) -> tensor<1x32x32x8x12xf16> {
  %0 = graph.normalize %x {axes = array<i64: 1, 2, 4>, epsilon = 1.0e-5 : f64} : (tensor<1x32x32x8x12xf16>) -> tensor<1x32x32x8x12xf16>
  return %0 : tensor<1x32x32x8x12xf16>
}

// -----

// Rows that are runs of memory stay in one kernel, and so do many side by side.
// CHECK-LABEL: @runs
// CHECK: graph.normalize
// CHECK: graph.reduce max %{{.*}} {axes = array<i64: 1>} : (tensor<32x64x1024xf32>) -> tensor<32x1024xf32>
func.func @runs(%x: tensor<32x64x1024xf32>) -> tensor<32x1024xf32> {
  %0 = graph.normalize %x {axes = array<i64: 2>, epsilon = 1.0e-5 : f64} : (tensor<32x64x1024xf32>) -> tensor<32x64x1024xf32>
  %1 = graph.reduce max %0 {axes = array<i64: 1>} : (tensor<32x64x1024xf32>) -> tensor<32x1024xf32>
  return %1 : tensor<32x1024xf32>
}

// -----

// One long row: parts of it, so that there is work for all.
// CHECK-LABEL: @long
// CHECK: %[[R:.*]] = graph.reshape %arg0 : (tensor<1048576xf32>) -> tensor<512x2048xf32>
// CHECK: %[[P:.*]] = graph.reduce sum %[[R]] {axes = array<i64: 1>, keepdims} : (tensor<512x2048xf32>) -> tensor<512x1xf32>
// CHECK: graph.reduce sum %[[P]] {axes = array<i64: 0, 1>, keepdims}
func.func @long(%x: tensor<1048576xf32>) -> tensor<f32> {
  %0 = graph.reduce sum %x {axes = array<i64: 0>} : (tensor<1048576xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// The number of terms is a size of the model's inputs.
// CHECK-LABEL: @symbolic
// CHECK: %[[N:.*]] = graph.dims affine_map<()[s0] -> (s0 * 384)>
// CHECK: graph.cast %[[N]]
#image = affine_map<()[s0] -> (1, s0, 32, 8, 12)>
module attributes {graph.symbols = [{name = "h", min = 1, opt = 32, max = 64, divisor = 1}]} {
  func.func @symbolic(%x: tensor<1x?x32x8x12xf32, #image>) -> tensor<1x?x32x8x12xf32, #image> {
    %0 = graph.normalize %x {axes = array<i64: 1, 2, 4>, epsilon = 1.0e-5 : f64} : (tensor<1x?x32x8x12xf32, #image>) -> tensor<1x?x32x8x12xf32, #image>
    return %0 : tensor<1x?x32x8x12xf32, #image>
  }
}

// -----

// The best place of one long row: a maximum of integers that hold values and, turned, places.
// CHECK-LABEL: @place
// CHECK: %[[PLACE:.*]] = graph.iota {axis = 1 : i64} : () -> tensor<1x50257xi64>
// CHECK: %[[KEY:.*]] = graph.add
// CHECK: graph.reshape %[[KEY]] {{.*}} -> tensor<1x29x1733xi64>
// CHECK: graph.reduce max {{.*}} {axes = array<i64: 2>, keepdims}
// CHECK: graph.reduce max
// CHECK-NOT: graph.arg_reduce
func.func @place(%x: tensor<1x50257xf32>) -> tensor<1xi64> {
  %0 = graph.arg_reduce %x {axis = 1 : i64} : (tensor<1x50257xf32>) -> tensor<1xi64>
  return %0 : tensor<1xi64>
}

// -----

// Of 64 bits there is no room for places; short rows are compared as they are.
// CHECK-LABEL: @no_keys
// CHECK-COUNT-2: graph.arg_reduce
func.func @no_keys(%x: tensor<1x50257xf64>, %y: tensor<4x1000xf32>) -> (tensor<1xi64>, tensor<4xi64>) {
  %0 = graph.arg_reduce %x {axis = 1 : i64} : (tensor<1x50257xf64>) -> tensor<1xi64>
  %1 = graph.arg_reduce %y {axis = 1 : i64} : (tensor<4x1000xf32>) -> tensor<4xi64>
  return %0, %1 : tensor<1xi64>, tensor<4xi64>
}

// -----

// An open batch may be more than one, whatever is optimized for: its images are no run.
// CHECK-LABEL: @batch
// CHECK: %[[P:.*]] = graph.reduce sum %arg0 {axes = array<i64: 2, 3>, keepdims}
// CHECK: graph.reduce sum %[[P]] {axes = array<i64: 0, 2, 3>, keepdims}
module attributes {graph.symbols = [{name = "n", min = 1 : i64, opt = 1 : i64, max = 64 : i64, divisor = 1 : i64}]} {
  func.func @batch(%x: tensor<?x64x32x32xf32, affine_map<()[s0] -> (s0, 64, 32, 32)>>) -> tensor<1x64x1x1xf32> {
    %0 = graph.reduce sum %x {axes = array<i64: 0, 2, 3>, keepdims} : (tensor<?x64x32x32xf32, affine_map<()[s0] -> (s0, 64, 32, 32)>>) -> tensor<1x64x1x1xf32>
    return %0 : tensor<1x64x1x1xf32>
  }
}

// -----

// Rows along the last of several open dimensions may have a single element, whatever is optimized for. All are
// one run, in parts of which the last ends with zeros.
// CHECK-LABEL: @volume
// CHECK: graph.reduce sum %arg0 {axes = array<i64: 4>, keepdims}
// CUT-LABEL: @volume
// CUT: %[[R:.*]] = graph.reshape %arg0 : {{.*}} -> tensor<?x2x?xf32, affine_map<()[s0, s1, s2, s3] -> (s0, 2, (s1 * s2) * s3)>>
// CUT: %[[P:.*]] = graph.pad constant %[[R]]
// CUT: %[[C:.*]] = graph.reshape %[[P]] : {{.*}} -> tensor<?x2x?x2048xf32,
// CUT: %[[S:.*]] = graph.reduce sum %[[C]] {axes = array<i64: 3>, keepdims}
// CUT: graph.reduce sum %[[S]] {axes = array<i64: 2, 3>, keepdims}
!x = tensor<?x2x?x?x?xf32, affine_map<()[s0, s1, s2, s3] -> (s0, 2, s1, s2, s3)>>
!y = tensor<?x2x1x1x1xf32, affine_map<()[s0, s1, s2, s3] -> (s0, 2, 1, 1, 1)>>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 64 : i64, divisor = 1 : i64},
  {name = "d", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "h", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @volume(%x: !x) -> !y {
    %0 = graph.reduce sum %x {axes = array<i64: 2, 3, 4>, keepdims} : (!x) -> !y
    return %0 : !y
  }
}

// -----

// The greatest of all of an open number, which may be far more than what is optimized for: of whole parts, and of what
// is left behind them. Another extreme is taken of the same parts; a sum would be another number, and stays one walk.
// So does what would be computed at places that open sizes divide.
// CHECK-LABEL: @extremes
// CHECK-NOT: graph.slice
// CUT-LABEL: @extremes
// CUT: %[[FLAT:.*]] = graph.reshape %arg0 : {{.*}} -> tensor<?xf32, affine_map<()[s0, s1] -> (s0 * s1)>>
// CUT: %[[WHOLE:.*]] = graph.slice %[[FLAT]] {{.*}} -> tensor<?xf32, affine_map<()[s0, s1] -> (((s0 * s1) floordiv 1024) * 1024)>>
// CUT: %[[PARTS:.*]] = graph.reshape %[[WHOLE]] : {{.*}} -> tensor<?x1024xf32,
// CUT: %[[REST:.*]] = graph.slice %[[FLAT]] {{.*}} -> tensor<?xf32, affine_map<()[s0, s1] -> ((s0 * s1) mod 1024)>>
// CUT: %[[P:.*]] = graph.reduce max %[[PARTS]] {axes = array<i64: 1>, keepdims}
// CUT: %[[M:.*]] = graph.reduce max %[[P]] {axes = array<i64: 0, 1>}
// CUT: %[[L:.*]] = graph.reduce max %[[REST]] {axes = array<i64: 0>}
// CUT: graph.max %[[M]], %[[L]]
// CUT-NOT: graph.slice
// CUT: graph.reduce min %[[PARTS]]
// CUT: graph.reduce min %[[REST]]
// CUT: graph.reduce sum %arg0 {axes = array<i64: 0, 1>
// CUT: graph.reduce max %arg1 {axes = array<i64: 0>
!x = tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>>
!few = tensor<?xf32, affine_map<()[s0, s1] -> (s0 + 7)>>
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 1024 : i64, divisor = 1 : i64},
  {name = "m", min = 1 : i64, opt = 128 : i64, max = 4096 : i64, divisor = 1 : i64}]} {
  func.func @extremes(%x: !x, %few: !few) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
    %0 = graph.reduce max %x {axes = array<i64: 0, 1>} : (!x) -> tensor<f32>
    %1 = graph.reduce min %x {axes = array<i64: 0, 1>} : (!x) -> tensor<f32>
    %2 = graph.reduce sum %x {axes = array<i64: 0, 1>} : (!x) -> tensor<f32>
    %3 = graph.reduce max %few {axes = array<i64: 0>} : (!few) -> tensor<f32>
    %4 = graph.abs %x : (!x) -> !x
    %5 = graph.reduce max %4 {axes = array<i64: 0, 1>} : (!x) -> tensor<f32>
    return %0, %1, %2, %3, %5 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
  }
}
