// RUN: charonia-opt %s -evaluate-shapes | FileCheck %s

// CHECK: #[[$PRODUCT:.+]] = affine_map<()[s0, s1] -> (s0 * s1)>

!x = tensor<?x?x12xf32, affine_map<()[s0, s1] -> (s0, s1, 12)>>
!y = tensor<?x?x3x4xf32, affine_map<()[s0, s1] -> (s0, s1, 3, 4)>>

// The chain that computes the target of a reshape; the reshape's type has it.
// CHECK-LABEL: @head_split
// CHECK-NEXT: graph.reshape
// CHECK-NEXT: return
func.func @head_split(%x: !x) -> !y {
  %shape = graph.shape_of %x : (!x) -> tensor<3xi64>
  %i = graph.constant dense<[0, 1, -1]> : tensor<3xi64>
  %g = graph.gather %shape, %i {axis = 0 : i64} : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %f = graph.constant dense<[1, 1, 4]> : tensor<3xi64>
  %q = graph.div %g, %f : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  %e = graph.constant dense<4> : tensor<1xi64>
  %c = graph.concat %q, %e {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<4xi64>
  %r = graph.reshape %x : (!x) -> !y
  return %r : !y
}

// Symbols stay as graph.dims, known sizes become constants.
// CHECK-LABEL: @used
// CHECK-DAG: %[[DIMS:.*]] = graph.dims #[[$PRODUCT]] : tensor<i64>
// CHECK-DAG: %[[SIZE:.*]] = graph.constant dense<12> : tensor<i32>
// CHECK-NOT: graph.shape_of
// CHECK: return %[[DIMS]], %[[SIZE]]
func.func @used(%x: !x) -> (tensor<i64>, tensor<i32>) {
  %shape = graph.shape_of %x : (!x) -> tensor<3xi64>
  %two = graph.slice %shape {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<3xi64>) -> tensor<2xi64>
  %n = graph.reduce prod %two {axes = array<i64: 0>} : (tensor<2xi64>) -> tensor<i64>
  %last = graph.constant dense<2> : tensor<i64>
  %d = graph.gather %shape, %last {axis = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %c = graph.cast %d {to = i32} : (tensor<i64>) -> tensor<i32>
  return %n, %c : tensor<i64>, tensor<i32>
}

// Data stays data.
// CHECK-LABEL: @data
// CHECK: graph.add
func.func @data(%x: tensor<3xi64>) -> tensor<3xi64> {
  %0 = graph.add %x, %x : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  return %0 : tensor<3xi64>
}
