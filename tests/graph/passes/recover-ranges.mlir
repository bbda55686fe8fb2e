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

// -----

// A mask that is stored as numbers and cast where it is read, behind views, too; what reads the numbers keeps them. Truth
// values that pass as numbers are what they were. Numbers of a mask with a hole stay.
// CHECK-LABEL: @numbers
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x4xi1>
// CHECK:      %[[K:.*]] = graph.compare le
// CHECK:      %[[N:.*]] = graph.constant {{.*}} : tensor<4x4xi8>
// CHECK:      %[[V:.*]] = graph.slice %[[K]] {{.*}} : (tensor<4x4xi1>) -> tensor<2x4xi1>
// CHECK-NOT:  graph.slice
// CHECK:      %[[T:.*]] = graph.transpose %[[X]] {{.*}} : (tensor<4x4xi1>) -> tensor<4x4xi1>
// CHECK:      %[[H:.*]] = graph.constant {{.*}} : tensor<4x4xf32>
// CHECK:      %[[C:.*]] = graph.cast %[[H]]
// CHECK:      return %[[V]], %[[N]], %[[T]], %[[C]]
func.func @numbers(%x: tensor<4x4xi1>) -> (tensor<2x4xi1>, tensor<4x4xi8>, tensor<4x4xi1>, tensor<4x4xi1>) {
  %0 = graph.constant dense<[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]> : tensor<4x4xi8>
  %1 = graph.slice %0 {starts = affine_map<() -> (2, 0)>, steps = array<i64: 1, 1>} : (tensor<4x4xi8>) -> tensor<2x4xi8>
  %2 = graph.cast %1 {to = i1} : (tensor<2x4xi8>) -> tensor<2x4xi1>
  %3 = graph.cast %x {to = f32} : (tensor<4x4xi1>) -> tensor<4x4xf32>
  %4 = graph.transpose %3 {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = graph.cast %4 {to = i1} : (tensor<4x4xf32>) -> tensor<4x4xi1>
  %6 = graph.constant dense<[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]> : tensor<4x4xf32>
  %7 = graph.cast %6 {to = i1} : (tensor<4x4xf32>) -> tensor<4x4xi1>
  return %2, %0, %5, %7 : tensor<2x4xi1>, tensor<4x4xi8>, tensor<4x4xi1>, tensor<4x4xi1>
}
