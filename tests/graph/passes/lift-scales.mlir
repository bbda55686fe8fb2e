// RUN: charonia-opt %s -fold-scales -split-input-file | FileCheck %s
// Products of floats of 8 bits with scales: the scales go behind them, first of all.

// A scale of the tensor and one of each column of weights that lie turned.
// CHECK-LABEL: @layer
// CHECK-DAG: %[[W:.*]] = graph.weight "w"
// CHECK-DAG: %[[WT:.*]] = graph.transpose %[[W]] {{.*}} -> tensor<128x96xf8E4M3FN>
// CHECK-DAG: %[[TT:.*]] = graph.transpose {{.*}} : (tensor<96x1xf32>) -> tensor<1x96xf32>
// CHECK: %[[P:.*]] = graph.matmul %arg0, %[[WT]] : (tensor<45x128xf8E4M3FN>, tensor<128x96xf8E4M3FN>) -> tensor<45x96xf32>
// CHECK: %[[A:.*]] = graph.mul %[[P]], %arg1
// CHECK: %[[B:.*]] = graph.mul %[[A]], %[[TT]]
// CHECK: return %[[B]]
func.func @layer(%a: tensor<45x128xf8E4M3FN>, %s: tensor<f32>) -> tensor<45x96xf32> {
  %w = graph.weight "w" : tensor<96x128xf8E4M3FN>
  %t = graph.weight "t" : tensor<96x1xf32>
  %0 = graph.cast %a {to = f32} : (tensor<45x128xf8E4M3FN>) -> tensor<45x128xf32>
  %1 = graph.mul %0, %s : (tensor<45x128xf32>, tensor<f32>) -> tensor<45x128xf32>
  %2 = graph.cast %w {to = f32} : (tensor<96x128xf8E4M3FN>) -> tensor<96x128xf32>
  %3 = graph.mul %2, %t : (tensor<96x128xf32>, tensor<96x1xf32>) -> tensor<96x128xf32>
  %4 = graph.transpose %3 {permutation = array<i64: 1, 0>} : (tensor<96x128xf32>) -> tensor<128x96xf32>
  %5 = graph.matmul %1, %4 : (tensor<45x128xf32>, tensor<128x96xf32>) -> tensor<45x96xf32>
  return %5 : tensor<45x96xf32>
}

// -----

// Scales of the tensors are multiplied with each other; a result in f16 is one again.
// CHECK-LABEL: @tensors
// CHECK: %[[P:.*]] = graph.matmul %arg0, %arg1 : {{.*}} -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = graph.mul %arg2, %arg3 : (tensor<f32>, tensor<f32>)
// CHECK: %[[Y:.*]] = graph.mul %[[P]], %[[S]]
// CHECK: graph.cast %[[Y]] {to = f16}
func.func @tensors(%a: tensor<4x16xf8E4M3FN>, %b: tensor<16x8xf8E5M2>, %s: tensor<f32>, %t: tensor<f32>) -> tensor<4x8xf16> {
  %0 = graph.cast %a {to = f32} : (tensor<4x16xf8E4M3FN>) -> tensor<4x16xf32>
  %1 = graph.mul %0, %s : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
  %2 = graph.cast %1 {to = f16} : (tensor<4x16xf32>) -> tensor<4x16xf16>
  %3 = graph.cast %b {to = f32} : (tensor<16x8xf8E5M2>) -> tensor<16x8xf32>
  %4 = graph.mul %t, %3 : (tensor<f32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %5 = graph.cast %4 {to = f16} : (tensor<16x8xf32>) -> tensor<16x8xf16>
  %6 = graph.matmul %2, %5 : (tensor<4x16xf16>, tensor<16x8xf16>) -> tensor<4x8xf16>
  return %6 : tensor<4x8xf16>
}

// -----

// What is scaled along the terms stays, and so does what has one small side.
// CHECK-LABEL: @along
// CHECK: graph.matmul {{.*}} : (tensor<4x16xf32>, tensor<16x8xf32>)
func.func @along(%a: tensor<4x16xf8E4M3FN>, %b: tensor<16x8xf8E4M3FN>, %s: tensor<16xf32>) -> tensor<4x8xf32> {
  %0 = graph.cast %a {to = f32} : (tensor<4x16xf8E4M3FN>) -> tensor<4x16xf32>
  %1 = graph.mul %0, %s : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = graph.cast %b {to = f32} : (tensor<16x8xf8E4M3FN>) -> tensor<16x8xf32>
  %3 = graph.matmul %1, %2 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
// CHECK-LABEL: @one_side
// CHECK: graph.matmul %arg0, {{.*}} : (tensor<4x16xf32>, tensor<16x8xf32>)
func.func @one_side(%a: tensor<4x16xf32>, %b: tensor<16x8xf8E4M3FN>) -> tensor<4x8xf32> {
  %0 = graph.cast %b {to = f32} : (tensor<16x8xf8E4M3FN>) -> tensor<16x8xf32>
  %1 = graph.matmul %a, %0 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Weights of 8 bits have no room for a scale of the result.
// CHECK-LABEL: @behind
// CHECK: %[[P:.*]] = graph.matmul %arg0, %{{.*}}
// CHECK: graph.mul %[[P]]
func.func @behind(%a: tensor<4x16xf8E4M3FN>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<16x8xf8E4M3FN>
  %t = graph.weight "t" : tensor<8xf32>
  %0 = graph.matmul %a, %w : (tensor<4x16xf8E4M3FN>, tensor<16x8xf8E4M3FN>) -> tensor<4x8xf32>
  %1 = graph.mul %0, %t : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// What is divided by a constant has a scale.
// CHECK-LABEL: @divided
// CHECK: %[[FIFTH:.*]] = graph.constant dense<2.000000e-01> : tensor<f32>
// CHECK: %[[P:.*]] = graph.matmul %arg0, %arg1 : {{.*}} -> tensor<4x8xf32>
// CHECK: graph.mul %[[P]], %[[FIFTH]]
func.func @divided(%a: tensor<4x16xf8E4M3FN>, %b: tensor<16x8xf8E4M3FN>) -> tensor<4x8xf32> {
  %c = graph.constant dense<5.0> : tensor<f32>
  %0 = graph.cast %a {to = f32} : (tensor<4x16xf8E4M3FN>) -> tensor<4x16xf32>
  %1 = graph.div %0, %c : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
  %2 = graph.cast %b {to = f32} : (tensor<16x8xf8E4M3FN>) -> tensor<16x8xf32>
  %3 = graph.matmul %1, %2 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
