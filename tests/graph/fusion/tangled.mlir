// RUN: charonia-opt %s -form-kernels | FileCheck %s

// Transposes and reshapes in turn, of which each doubles the coordinates: one of every
// five is stored, and a kernel has no more.
// CHECK-LABEL: @tangle
// CHECK:         graph.kernel "transpose"
// CHECK-COUNT-5:   graph.transpose
// CHECK-NOT:       graph.transpose
// CHECK:         graph.kernel
// CHECK-COUNT-4:   graph.transpose
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

// The same with other operators between them, which hand coordinates on.
// CHECK-LABEL: @tangled_operators
// CHECK:         graph.kernel
// CHECK-COUNT-5:   graph.transpose
// CHECK-NOT:       graph.transpose
// CHECK:         graph.kernel
// CHECK-COUNT-2:   graph.transpose
// CHECK-NOT:       graph.transpose
// CHECK:         graph.kernel
// CHECK-COUNT-2:   graph.transpose
// CHECK-NOT:       graph.transpose
func.func @tangled_operators(%x: tensor<3x8x35x48xf32>) -> tensor<48x35x8x3xf32> {
  %t0 = graph.transpose %x {permutation = array<i64: 3, 2, 1, 0>} : (tensor<3x8x35x48xf32>) -> tensor<48x35x8x3xf32>
  %e0 = graph.exp %t0 : (tensor<48x35x8x3xf32>) -> tensor<48x35x8x3xf32>
  %r0 = graph.reshape %e0 : (tensor<48x35x8x3xf32>) -> tensor<7x12x10x48xf32>
  %t1 = graph.transpose %r0 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<7x12x10x48xf32>) -> tensor<48x10x12x7xf32>
  %e1 = graph.exp %t1 : (tensor<48x10x12x7xf32>) -> tensor<48x10x12x7xf32>
  %r1 = graph.reshape %e1 : (tensor<48x10x12x7xf32>) -> tensor<3x8x35x48xf32>
  %t2 = graph.transpose %r1 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<3x8x35x48xf32>) -> tensor<48x35x8x3xf32>
  %e2 = graph.exp %t2 : (tensor<48x35x8x3xf32>) -> tensor<48x35x8x3xf32>
  %r2 = graph.reshape %e2 : (tensor<48x35x8x3xf32>) -> tensor<7x12x10x48xf32>
  %t3 = graph.transpose %r2 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<7x12x10x48xf32>) -> tensor<48x10x12x7xf32>
  %e3 = graph.exp %t3 : (tensor<48x10x12x7xf32>) -> tensor<48x10x12x7xf32>
  %r3 = graph.reshape %e3 : (tensor<48x10x12x7xf32>) -> tensor<3x8x35x48xf32>
  %t4 = graph.transpose %r3 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<3x8x35x48xf32>) -> tensor<48x35x8x3xf32>
  %e4 = graph.exp %t4 : (tensor<48x35x8x3xf32>) -> tensor<48x35x8x3xf32>
  %r4 = graph.reshape %e4 : (tensor<48x35x8x3xf32>) -> tensor<7x12x10x48xf32>
  %t5 = graph.transpose %r4 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<7x12x10x48xf32>) -> tensor<48x10x12x7xf32>
  %e5 = graph.exp %t5 : (tensor<48x10x12x7xf32>) -> tensor<48x10x12x7xf32>
  %r5 = graph.reshape %e5 : (tensor<48x10x12x7xf32>) -> tensor<3x8x35x48xf32>
  %t6 = graph.transpose %r5 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<3x8x35x48xf32>) -> tensor<48x35x8x3xf32>
  %e6 = graph.exp %t6 : (tensor<48x35x8x3xf32>) -> tensor<48x35x8x3xf32>
  %r6 = graph.reshape %e6 : (tensor<48x35x8x3xf32>) -> tensor<7x12x10x48xf32>
  %t7 = graph.transpose %r6 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<7x12x10x48xf32>) -> tensor<48x10x12x7xf32>
  %e7 = graph.exp %t7 : (tensor<48x10x12x7xf32>) -> tensor<48x10x12x7xf32>
  %r7 = graph.reshape %e7 : (tensor<48x10x12x7xf32>) -> tensor<3x8x35x48xf32>
  %t8 = graph.transpose %r7 {permutation = array<i64: 3, 2, 1, 0>} : (tensor<3x8x35x48xf32>) -> tensor<48x35x8x3xf32>
  return %t8 : tensor<48x35x8x3xf32>
}
