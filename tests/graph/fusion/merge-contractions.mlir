// RUN: charonia-opt %s --merge-contractions --split-input-file | FileCheck %s

// Query, key and value: one matmul and one bias with the weights side by side.
// CHECK-DAG:   #[[Q0:.*]] = affine_map<() -> (0, 0)>
// CHECK-DAG:   #[[K0:.*]] = affine_map<() -> (0, 32)>
// CHECK-DAG:   #[[V0:.*]] = affine_map<() -> (0, 64)>
// CHECK-LABEL: func.func @qkv
// CHECK-SAME:    %[[X:.*]]: tensor<16x32xf32>
// CHECK:         %[[W:.*]] = graph.concat {{.*}} {axis = 1 : i64} {{.*}} -> tensor<32x80xf32>
// CHECK:         %[[M:.*]] = graph.matmul %[[X]], %[[W]]
// CHECK:         %[[B:.*]] = graph.concat {{.*}} {axis = 0 : i64} {{.*}} -> tensor<80xf32>
// CHECK:         %[[A:.*]] = graph.add %[[M]], %[[B]]
// CHECK-DAG:     %[[Q:.*]] = graph.slice %[[A]] {starts = #[[Q0]],
// CHECK-DAG:     %[[K:.*]] = graph.slice %[[A]] {starts = #[[K0]],
// CHECK-DAG:     %[[V:.*]] = graph.slice %[[A]] {starts = #[[V0]],
// CHECK-NOT:     graph.matmul
// CHECK:         return %[[Q]], %[[K]], %[[V]]
func.func @qkv(%x: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x16xf32>) {
  %wq = graph.weight "wq" : tensor<32x32xf32>
  %bq = graph.weight "bq" : tensor<32xf32>
  %0 = graph.matmul %x, %wq : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %q = graph.add %0, %bq : (tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  %wk = graph.weight "wk" : tensor<32x32xf32>
  %bk = graph.weight "bk" : tensor<32xf32>
  %1 = graph.matmul %x, %wk : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %k = graph.add %1, %bk : (tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  %wv = graph.weight "wv" : tensor<32x16xf32>
  %bv = graph.weight "bv" : tensor<16xf32>
  %2 = graph.matmul %x, %wv : (tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  %v = graph.add %2, %bv : (tensor<16x16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
  return %q, %k, %v : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x16xf32>
}

// -----

// Other strides or an rhs that is no weight: nothing to merge.
// CHECK-LABEL: func.func @apart
// CHECK-NOT:     graph.concat
func.func @apart(%x: tensor<1x8x8x4xf32>, %a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<4x4xf32>)
    -> (tensor<1x8x8x2xf32>, tensor<1x4x4x2xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = graph.weight "w" : tensor<2x1x1x4xf32>
  %v = graph.weight "v" : tensor<2x1x1x4xf32>
  %0 = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<1x8x8x4xf32>, tensor<2x1x1x4xf32>) -> tensor<1x8x8x2xf32>
  %1 = graph.conv %x, %v {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<1x8x8x4xf32>, tensor<2x1x1x4xf32>) -> tensor<1x4x4x2xf32>
  %2 = graph.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = graph.matmul %a, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3 : tensor<1x8x8x2xf32>, tensor<1x4x4x2xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
