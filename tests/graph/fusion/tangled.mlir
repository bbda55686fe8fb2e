// RUN: charonia-opt %s -form-kernels | FileCheck %s

// Transposes and reshapes in turn, of which each makes the coordinates longer: one of
// every seven is stored, and a kernel has no more.
// CHECK-LABEL: @tangle
// CHECK:         graph.kernel "transpose"
// CHECK-COUNT-7:   graph.transpose
// CHECK-NOT:       graph.transpose
// CHECK:         graph.kernel
// CHECK-COUNT-2:   graph.transpose
// CHECK-NOT:       graph.transpose
// CHECK:           graph.sin
func.func @tangle(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %t0 = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r0 = graph.reshape %t0 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t1 = graph.transpose %r0 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r1 = graph.reshape %t1 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t2 = graph.transpose %r1 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r2 = graph.reshape %t2 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t3 = graph.transpose %r2 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r3 = graph.reshape %t3 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t4 = graph.transpose %r3 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r4 = graph.reshape %t4 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t5 = graph.transpose %r4 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r5 = graph.reshape %t5 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t6 = graph.transpose %r5 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r6 = graph.reshape %t6 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t7 = graph.transpose %r6 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r7 = graph.reshape %t7 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %t8 = graph.transpose %r7 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %r8 = graph.reshape %t8 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %y = graph.sin %r8 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
