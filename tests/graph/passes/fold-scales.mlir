// RUN: charonia-opt %s -fold-scales -split-input-file | FileCheck %s

!x = tensor<?x3x8x8xf32, affine_map<()[s0] -> (s0, 3, 8, 8)>>
!y = tensor<?x6x8x8xf32, affine_map<()[s0] -> (s0, 6, 8, 8)>>

// A convolution with bias and the batch normalization behind it.
// CHECK-LABEL: @batch_norm
// CHECK-DAG: %[[W:.*]] = graph.weight "w"
// CHECK-DAG: %[[B:.*]] = graph.weight "b"
// CHECK-DAG: %[[S:.*]] = graph.weight "s"
// CHECK-DAG: %[[T:.*]] = graph.weight "t"
// CHECK-DAG: %[[R:.*]] = graph.reshape %[[S]] : (tensor<6x1x1xf32>) -> tensor<6x1x1x1xf32>
// CHECK-DAG: %[[WS:.*]] = graph.mul %[[W]], %[[R]]
// CHECK-DAG: %[[CONV:.*]] = graph.conv %arg0, %[[WS]]
// CHECK-DAG: %[[BS:.*]] = graph.mul %[[B]], %[[S]]
// CHECK-DAG: %[[SHIFT:.*]] = graph.add %[[BS]], %[[T]]
// CHECK: %[[SUM:.*]] = graph.add %[[CONV]], %[[SHIFT]]
// CHECK: return %[[SUM]]
func.func @batch_norm(%x: !x) -> !y {
  %w = graph.weight "w" : tensor<6x3x3x3xf32>
  %b = graph.weight "b" : tensor<6x1x1xf32>
  %s = graph.weight "s" : tensor<6x1x1xf32>
  %t = graph.weight "t" : tensor<6x1x1xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64}
    : (!x, tensor<6x3x3x3xf32>) -> !y
  %1 = graph.add %0, %b : (!y, tensor<6x1x1xf32>) -> !y
  %2 = graph.mul %1, %s : (!y, tensor<6x1x1xf32>) -> !y
  %3 = graph.add %2, %t : (!y, tensor<6x1x1xf32>) -> !y
  return %3 : !y
}

// -----

// Filters of groups scale as well; a division is a scale.
// CHECK-LABEL: @depthwise
// CHECK: %[[R:.*]] = graph.reciprocal
// CHECK: %[[F:.*]] = graph.reshape %[[R]] : (tensor<1x6x1x1xf32>) -> tensor<6x1x1x1xf32>
// CHECK: %[[WS:.*]] = graph.mul %{{.*}}, %[[F]]
// CHECK: %[[C:.*]] = graph.conv %arg0, %[[WS]]
// CHECK: return %[[C]]
func.func @depthwise(%x: tensor<1x6x8x8xf32>) -> tensor<1x6x6x6xf32> {
  %w = graph.weight "w" : tensor<6x1x3x3xf32>
  %s = graph.weight "s" : tensor<1x6x1x1xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 6 : i64}
    : (tensor<1x6x8x8xf32>, tensor<6x1x3x3xf32>) -> tensor<1x6x6x6xf32>
  %1 = graph.div %0, %s : (tensor<1x6x6x6xf32>, tensor<1x6x1x1xf32>) -> tensor<1x6x6x6xf32>
  return %1 : tensor<1x6x6x6xf32>
}

// -----

// CHECK-LABEL: @matmul
// CHECK: %[[R:.*]] = graph.reshape %{{.*}} : (tensor<5xf32>) -> tensor<1x5xf32>
// CHECK: %[[WS:.*]] = graph.mul %{{.*}}, %[[R]] : (tensor<4x5xf32>, tensor<1x5xf32>) -> tensor<4x5xf32>
// CHECK: graph.matmul %arg0, %[[WS]]
// CHECK-NEXT: return
func.func @matmul(%x: tensor<2x3x4xf32>) -> tensor<2x3x5xf32> {
  %w = graph.weight "w" : tensor<4x5xf32>
  %s = graph.weight "s" : tensor<5xf32>
  %0 = graph.matmul %x, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  %1 = graph.mul %s, %0 : (tensor<5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// What someone else reads, a scale of rows, weights that are no weights: all stay.
// CHECK-LABEL: @kept
// CHECK: graph.matmul %arg0, %[[W:.*]] :
// CHECK: graph.mul
// CHECK: graph.matmul %arg0, %[[W]] :
// CHECK: graph.mul
// CHECK: graph.matmul %arg0, %arg1 :
// CHECK: graph.mul
func.func @kept(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = graph.weight "w" : tensor<4x4xf32>
  %s = graph.weight "s" : tensor<4xf32>
  %r = graph.weight "r" : tensor<4x1xf32>
  %0 = graph.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = graph.mul %0, %s : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %2 = graph.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = graph.mul %2, %r : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %4 = graph.matmul %x, %y : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = graph.mul %4, %s : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %0, %1, %3, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A sign is a scale; so is that of what is subtracted from a constant, which is
// then added. A scale goes below a sign.
// CHECK-LABEL: @signs
// CHECK-DAG: %[[W:.*]] = graph.weight "w"
// CHECK-DAG: %[[C:.*]] = graph.weight "c"
// CHECK: %[[ONE:.*]] = graph.constant dense<-1.000000e+00> : tensor<f32>
// CHECK: %[[R:.*]] = graph.reshape %[[ONE]]
// CHECK: %[[WA:.*]] = graph.mul %[[W]], %[[R]]
// CHECK: %[[A:.*]] = graph.matmul %arg0, %[[WA]]
// CHECK: %[[WB:.*]] = graph.mul %[[W]], %{{.*}} : (tensor<4x4xf32>, tensor<1x1xf32>)
// CHECK: %[[B:.*]] = graph.matmul %arg1, %[[WB]]
// CHECK: %[[D:.*]] = graph.add %[[B]], %[[C]]
// CHECK: return %[[A]], %[[D]]
func.func @signs(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = graph.weight "w" : tensor<4x4xf32>
  %c = graph.weight "c" : tensor<4xf32>
  %0 = graph.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = graph.neg %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = graph.matmul %y, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = graph.sub %c, %2 : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1, %3 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// A scale passes a conversion to a smaller type, and scales what is added on its
// way; a conversion to a larger type stops it.
// CHECK-LABEL: @conversions
// CHECK-DAG: %[[B:.*]] = graph.weight "b"
// CHECK-DAG: %[[S:.*]] = graph.weight "s"
// CHECK-DAG: %[[WIDE:.*]] = graph.cast %[[S]] {to = f32}
// CHECK-DAG: %[[BS:.*]] = graph.mul %[[B]], %[[WIDE]]
// CHECK-DAG: %[[M:.*]] = graph.matmul %arg0
// CHECK: %[[SUM:.*]] = graph.add %[[M]], %[[BS]]
// CHECK-NEXT: graph.cast %[[SUM]] {to = f16}
// CHECK: graph.matmul %arg1
// CHECK: graph.cast %{{.*}} {to = f32}
// CHECK: graph.mul
func.func @conversions(%x: tensor<2x4xf32>, %y: tensor<2x4xf16>) -> (tensor<2x4xf16>, tensor<2x4xf32>) {
  %w = graph.weight "w" : tensor<4x4xf32>
  %b = graph.weight "b" : tensor<4xf32>
  %s = graph.weight "s" : tensor<4xf16>
  %v = graph.weight "v" : tensor<4x4xf16>
  %t = graph.weight "t" : tensor<4xf32>
  %0 = graph.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = graph.sub %b, %0 : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = graph.cast %1 {to = f16} : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %3 = graph.mul %2, %s : (tensor<2x4xf16>, tensor<4xf16>) -> tensor<2x4xf16>
  %4 = graph.matmul %y, %v : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
  %5 = graph.cast %4 {to = f32} : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %6 = graph.mul %5, %t : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %3, %6 : tensor<2x4xf16>, tensor<2x4xf32>
}

// -----

// Shifts of a product with weights become one, below a view, too. A model's other sums stay as they are, and so do those of a
// product that something else reads.
// CHECK-LABEL: @shifts
// CHECK: %[[BC:.*]] = graph.add %[[B:.*]], %[[C:.*]] :
// CHECK: graph.add %{{.*}}, %[[BC]]
// CHECK: %[[S:.*]] = graph.add %arg0, %[[B]]
// CHECK: graph.add %[[S]], %[[C]]
// CHECK: %[[M:.*]] = graph.matmul
// CHECK: %[[T:.*]] = graph.add %[[M]], %[[B]]
// CHECK: %[[U:.*]] = graph.add %[[T]], %[[C]]
// CHECK: return %{{.*}}, %{{.*}}, %[[M]], %[[U]]
func.func @shifts(%x: tensor<2x4xf32>, %y: tensor<2x2xf32>) -> (tensor<1x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %w = graph.weight "w" : tensor<4x4xf32>
  %v = graph.weight "v" : tensor<2x4xf32>
  %b = graph.weight "b" : tensor<4xf32>
  %c = graph.weight "c" : tensor<4xf32>
  %0 = graph.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = graph.reshape %0 : (tensor<2x4xf32>) -> tensor<1x2x4xf32>
  %2 = graph.add %1, %b : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
  %3 = graph.add %2, %c : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
  %4 = graph.add %x, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %5 = graph.add %4, %c : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %6 = graph.matmul %y, %v : (tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %7 = graph.add %6, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %8 = graph.add %7, %c : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %3, %5, %6, %8 : tensor<1x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
