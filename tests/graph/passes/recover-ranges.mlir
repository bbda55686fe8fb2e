// RUN: charonia-opt %s -recover-ranges -split-input-file | FileCheck %s

// Integers that grow evenly, along one dimension or several.
// CHECK-LABEL: @positions
// CHECK-DAG:  %[[I:.*]] = graph.iota {axis = 0 : i64} : () -> tensor<16x1xi64>
// CHECK-DAG:  %[[R:.*]] = graph.iota {axis = 0 : i64} : () -> tensor<4x1xi32>
// CHECK-DAG:  %[[TEN:.*]] = graph.constant dense<10> : tensor<i32>
// CHECK:      %[[TENS:.*]] = graph.mul %[[R]], %[[TEN]]
// CHECK:      %[[C:.*]] = graph.iota {axis = 1 : i64} : () -> tensor<1x4xi32>
// CHECK:      %[[BACK:.*]] = graph.mul %[[C]], %{{.*}}
// CHECK:      %[[S:.*]] = graph.add %[[TENS]], %[[BACK]]
// CHECK:      %[[B:.*]] = graph.add %[[S]], %{{.*}} : (tensor<4x4xi32>, tensor<i32>) -> tensor<4x4xi32>
// CHECK:      return %[[I]], %[[B]]
func.func @positions() -> (tensor<16x1xi64>, tensor<4x4xi32>) {
  %0 = graph.constant dense<[[0], [1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12], [13], [14], [15]]> : tensor<16x1xi64>
  %1 = graph.constant dense<[[7, 6, 5, 4], [17, 16, 15, 14], [27, 26, 25, 24], [37, 36, 35, 34]]> : tensor<4x4xi32>
  return %0, %1 : tensor<16x1xi64>, tensor<4x4xi32>
}

// -----

// Few elements, numbers whose sums might wrap, and others than those, stay.
// CHECK-LABEL: @others
// CHECK-NOT:  graph.iota
// CHECK:      return
func.func @others() -> (tensor<4xi64>, tensor<16xi64>, tensor<16xi8>, tensor<2x8xi64>, tensor<16xi32>) {
  %0 = graph.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %1 = graph.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16]> : tensor<16xi64>
  %2 = graph.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : tensor<16xi8>
  %3 = graph.constant dense<[[-9223372036854775808, 0, 1, 2, 3, 4, 5, 6], [9223372036854775807, 0, 0, 0, 0, 0, 0, 0]]> : tensor<2x8xi64>
  %4 = graph.constant dense<[2147483647, -2147483648, 2147483647, -2147483648, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]> : tensor<16xi32>
  return %0, %1, %2, %3, %4 : tensor<4xi64>, tensor<16xi64>, tensor<16xi8>, tensor<2x8xi64>, tensor<16xi32>
}

// -----

// A mask up to the diagonal, and a window.
// CHECK-LABEL: @bands
// CHECK:      %[[T:.*]] = graph.iota {axis = 3 : i64} : () -> tensor<1x1x1x4xi64>
// CHECK:      %[[S:.*]] = graph.iota {axis = 2 : i64} : () -> tensor<1x1x4x1xi64>
// CHECK:      %[[C:.*]] = graph.compare le %[[T]], %[[S]] : {{.*}} -> tensor<1x1x4x4xi1>
// CHECK:      graph.compare ge
// CHECK:      graph.compare le
// CHECK:      %[[W:.*]] = graph.and
// CHECK:      return %[[C]], %[[W]]
func.func @bands() -> (tensor<1x1x4x4xi1>, tensor<4x5xi1>) {
  %0 = graph.constant dense<[[[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]]]> : tensor<1x1x4x4xi1>
  %1 = graph.constant dense<[[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1]]> : tensor<4x5xi1>
  return %0, %1 : tensor<1x1x4x4xi1>, tensor<4x5xi1>
}

// -----

// A mask that is added: 0 in a band, one number below 0 elsewhere. One of two numbers,
// one that is above 0, and one with a hole stay.
// CHECK-LABEL: @added
// CHECK:      %[[K:.*]] = graph.compare le
// CHECK-DAG:  %[[ZERO:.*]] = graph.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG:  %[[LOW:.*]] = graph.constant dense<0xFF800000> : tensor<f32>
// CHECK:      %[[M:.*]] = graph.select %[[K]], %[[ZERO]], %[[LOW]] : {{.*}} -> tensor<4x4xf32>
// CHECK-NOT:  graph.select
// CHECK:      return %[[M]]
func.func @added() -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = graph.constant dense<[[0.0, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %1 = graph.constant dense<[[0.0, -1.0, -2.0, -1.0], [0.0, 0.0, -1.0, -1.0], [0.0, 0.0, 0.0, -1.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %2 = graph.constant dense<[[0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  %3 = graph.constant dense<[[0.0, -1.0, -1.0, -1.0], [0.0, 0.0, -1.0, -1.0], [0.0, -1.0, 0.0, -1.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// What a mask of 1 and 0 times a number gives: -0 where it keeps, and that stays. Two zeros are no mask.
// CHECK-LABEL: @negative_zero
// CHECK:      %[[K:.*]] = graph.compare le
// CHECK-DAG:  %[[ZERO:.*]] = graph.constant dense<-0.000000e+00> : tensor<f16>
// CHECK-DAG:  %[[LOW:.*]] = graph.constant dense<-6.550400e+04> : tensor<f16>
// CHECK:      %[[M:.*]] = graph.select %[[K]], %[[ZERO]], %[[LOW]] : {{.*}} -> tensor<4x4xf16>
// CHECK-NOT:  graph.select
// CHECK:      return %[[M]]
func.func @negative_zero() -> (tensor<4x4xf16>, tensor<4x4xf16>) {
  %0 = graph.constant dense<[[-0.0, 0xFBFF, 0xFBFF, 0xFBFF], [-0.0, -0.0, 0xFBFF, 0xFBFF], [-0.0, -0.0, -0.0, 0xFBFF], [-0.0, -0.0, -0.0, -0.0]]> : tensor<4x4xf16>
  %1 = graph.constant dense<[[0.0, -0.0, -0.0, -0.0], [0.0, 0.0, -0.0, -0.0], [0.0, 0.0, 0.0, -0.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<4x4xf16>
  return %0, %1 : tensor<4x4xf16>, tensor<4x4xf16>
}
