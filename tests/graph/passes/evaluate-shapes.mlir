// RUN: charonia-opt %s -split-input-file -evaluate-shapes | FileCheck %s

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

// -----

// A product of 32 bits wraps from 21475 on: what its low bits say is told, its
// rest is computed as it wrapped.
// CHECK-LABEL: @wraps
// CHECK: %[[PRODUCT:.*]] = graph.dims
// CHECK: %[[SUM:.*]] = graph.dims
// CHECK: %[[REST:.*]] = graph.mod %[[PRODUCT]]
// CHECK: %[[BEHIND:.*]] = graph.add %[[REST]]
// CHECK: return %[[SUM]], %[[BEHIND]]
module attributes {graph.symbols = [{name = "n", min = 1, opt = 8, max = 30000, divisor = 1}]} {
func.func @wraps(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> (tensor<i32>, tensor<i32>) {
  %shape = graph.shape_of %x : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<1xi64>
  %n = graph.reshape %shape : (tensor<1xi64>) -> tensor<i64>
  %narrow = graph.cast %n {to = i32} : (tensor<i64>) -> tensor<i32>
  %many = graph.constant dense<100000> : tensor<i32>
  %three = graph.constant dense<3> : tensor<i32>
  %product = graph.mul %narrow, %many : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %sum = graph.add %product, %three : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %rest = graph.mod %product, %three : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %behind = graph.add %rest, %three : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %sum, %behind : tensor<i32>, tensor<i32>
}
}

// -----

// Up to 20000 it does not.
// CHECK-LABEL: @fits
// CHECK-NOT: graph.mod
// CHECK: return
module attributes {graph.symbols = [{name = "n", min = 1, opt = 8, max = 20000, divisor = 1}]} {
func.func @fits(%x: tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<i32> {
  %shape = graph.shape_of %x : (tensor<?xf32, affine_map<()[s0] -> (s0)>>) -> tensor<1xi64>
  %n = graph.reshape %shape : (tensor<1xi64>) -> tensor<i64>
  %narrow = graph.cast %n {to = i32} : (tensor<i64>) -> tensor<i32>
  %many = graph.constant dense<100000> : tensor<i32>
  %three = graph.constant dense<3> : tensor<i32>
  %product = graph.mul %narrow, %many : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %rest = graph.mod %product, %three : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %rest : tensor<i32>
}
}
