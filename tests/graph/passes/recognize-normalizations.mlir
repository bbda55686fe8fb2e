// RUN: charonia-opt %s -recognize-patterns -split-input-file | FileCheck %s

!x = tensor<?x64xf32, affine_map<()[s0] -> (s0, 64)>>
!r = tensor<?x1xf32, affine_map<()[s0] -> (s0, 1)>>

// CHECK-LABEL: @layer_norm
// CHECK: %[[N:.*]] = graph.normalize %arg0 {axes = array<i64: 1>, epsilon = {{.*}}E-6 : f64}
// CHECK-NEXT: %[[S:.*]] = graph.mul %[[N]], %arg1
// CHECK-NEXT: return %[[S]]
func.func @layer_norm(%x: !x, %g: tensor<64xf32>) -> !x {
  %n = graph.constant dense<1.562500e-02> : tensor<f32>
  %eps = graph.constant dense<9.99999974E-6> : tensor<f32>
  %0 = graph.reduce sum %x {axes = array<i64: 1>, keepdims} : (!x) -> !r
  %1 = graph.mul %0, %n : (!r, tensor<f32>) -> !r
  %2 = graph.sub %x, %1 : (!x, !r) -> !x
  %3 = graph.mul %2, %2 : (!x, !x) -> !x
  %4 = graph.reduce sum %3 {axes = array<i64: 1>, keepdims} : (!x) -> !r
  %5 = graph.mul %4, %n : (!r, tensor<f32>) -> !r
  %6 = graph.add %5, %eps : (!r, tensor<f32>) -> !r
  %7 = graph.rsqrt %6 : (!r) -> !r
  %8 = graph.mul %2, %7 : (!x, !r) -> !x
  %9 = graph.mul %8, %g : (!x, tensor<64xf32>) -> !x
  return %9 : !x
}

// -----

// The scale may come between, the reduction without keepdims, the variance with
// another mean is none.
// CHECK-LABEL: @rms_norm
// CHECK: %[[N:.*]] = graph.normalize %arg0 {axes = array<i64: 1>, epsilon = {{.*}}, rms}
// CHECK-NEXT: %[[S:.*]] = graph.mul %[[N]], %arg1
// CHECK-NEXT: return %[[S]]
func.func @rms_norm(%x: tensor<4x64xf32>, %g: tensor<64xf32>) -> tensor<4x64xf32> {
  %n = graph.constant dense<1.562500e-02> : tensor<f32>
  %eps = graph.constant dense<9.99999974E-6> : tensor<f32>
  %3 = graph.mul %x, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %4 = graph.reduce sum %3 {axes = array<i64: 1>} : (tensor<4x64xf32>) -> tensor<4xf32>
  %r = graph.reshape %4 : (tensor<4xf32>) -> tensor<4x1xf32>
  %5 = graph.mul %r, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %6 = graph.add %5, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = graph.rsqrt %6 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = graph.mul %x, %g : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
  %9 = graph.mul %8, %7 : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xf32>
  return %9 : tensor<4x64xf32>
}

// -----

// As quotients: by the count of what is summed, by the deviation, by what else there is.
// CHECK-LABEL: @layer_norm_of_quotients
// CHECK-SAME: (%[[X:.*]]: {{.*}}, %[[G:.*]]: {{.*}})
// CHECK: %[[N:.*]] = graph.normalize %[[X]] {axes = array<i64: 1>, epsilon = {{.*}}E-6 : f64} :
// CHECK-NEXT: %[[S:.*]] = graph.div %[[N]], %[[G]]
// CHECK: %[[R:.*]] = graph.normalize %[[X]] {{{.*}}, rms}
// CHECK: return %[[S]], %[[R]]
func.func @layer_norm_of_quotients(%x: tensor<4x49xf32>, %g: tensor<49xf32>) -> (tensor<4x49xf32>, tensor<4x49xf32>) {
  %n = graph.constant dense<49.0> : tensor<f32>
  %eps = graph.constant dense<9.99999974E-6> : tensor<f32>
  %0 = graph.reduce sum %x {axes = array<i64: 1>, keepdims} : (tensor<4x49xf32>) -> tensor<4x1xf32>
  %1 = graph.div %0, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %2 = graph.sub %x, %1 : (tensor<4x49xf32>, tensor<4x1xf32>) -> tensor<4x49xf32>
  %3 = graph.mul %2, %2 : (tensor<4x49xf32>, tensor<4x49xf32>) -> tensor<4x49xf32>
  %4 = graph.reduce sum %3 {axes = array<i64: 1>, keepdims} : (tensor<4x49xf32>) -> tensor<4x1xf32>
  %5 = graph.div %4, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %6 = graph.add %5, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = graph.sqrt %6 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = graph.div %2, %7 : (tensor<4x49xf32>, tensor<4x1xf32>) -> tensor<4x49xf32>
  %9 = graph.div %8, %g : (tensor<4x49xf32>, tensor<49xf32>) -> tensor<4x49xf32>
  %s = graph.mul %x, %x : (tensor<4x49xf32>, tensor<4x49xf32>) -> tensor<4x49xf32>
  %a = graph.reduce sum %s {axes = array<i64: 1>, keepdims} : (tensor<4x49xf32>) -> tensor<4x1xf32>
  %b = graph.div %a, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %c = graph.add %b, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %d = graph.sqrt %c : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %e = graph.reciprocal %d : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %f = graph.mul %x, %e : (tensor<4x49xf32>, tensor<4x1xf32>) -> tensor<4x49xf32>
  return %9, %f : tensor<4x49xf32>, tensor<4x49xf32>
}

// -----

// CHECK-LABEL: @wrong_count
// CHECK-NOT: graph.normalize
func.func @wrong_count(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %n = graph.constant dense<1.587300e-02> : tensor<f32>
  %eps = graph.constant dense<9.99999974E-6> : tensor<f32>
  %3 = graph.mul %x, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %4 = graph.reduce sum %3 {axes = array<i64: 1>, keepdims} : (tensor<4x64xf32>) -> tensor<4x1xf32>
  %5 = graph.mul %4, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %6 = graph.add %5, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = graph.rsqrt %6 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %9 = graph.mul %x, %7 : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xf32>
  return %9 : tensor<4x64xf32>
}

// -----

// CHECK-LABEL: @softmax
// CHECK-NEXT: %[[S:.*]] = graph.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: %[[L:.*]] = graph.softmax %arg0 {axis = 1 : i64, log}
// CHECK-NEXT: return %[[S]], %[[L]]
func.func @softmax(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = graph.reduce max %x {axes = array<i64: 1>, keepdims} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = graph.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = graph.exp %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = graph.reduce sum %2 {axes = array<i64: 1>, keepdims} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %4 = graph.div %2, %3 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %5 = graph.log %3 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = graph.sub %1, %5 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %4, %6 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Something else reads the root: it would go on with another one.
// CHECK-LABEL: @root_read_elsewhere
// CHECK-NOT: graph.normalize
// CHECK: return
func.func @root_read_elsewhere(%x: tensor<4x64xf32>, %y: tensor<4x1xf32>) -> (tensor<4x64xf32>, tensor<4x1xf32>, tensor<4x64xf32>, tensor<4x1xf32>) {
  %n = graph.constant dense<1.562500e-02> : tensor<f32>
  %eps = graph.constant dense<9.99999974E-6> : tensor<f32>
  %3 = graph.mul %x, %x : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %4 = graph.reduce sum %3 {axes = array<i64: 1>, keepdims} : (tensor<4x64xf32>) -> tensor<4x1xf32>
  %5 = graph.mul %4, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %6 = graph.add %5, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = graph.sqrt %6 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = graph.div %x, %7 : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xf32>
  %9 = graph.div %y, %7 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  // The reciprocal, and what is below the root.
  %eps2 = graph.constant dense<9.99999974E-5> : tensor<f32>
  %a = graph.add %5, %eps2 : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %b = graph.rsqrt %a : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %c = graph.mul %x, %b : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xf32>
  %d = graph.mul %y, %b : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %8, %9, %c, %d : tensor<4x64xf32>, tensor<4x1xf32>, tensor<4x64xf32>, tensor<4x1xf32>
}

// -----

// Something else reads the distances from the mean: they stay, and what is made of them alone is an operator.
// CHECK-LABEL: @distances_read_elsewhere
// CHECK: %[[D:.*]] = graph.sub %arg0
// CHECK: %[[N:.*]] = graph.normalize %[[D]] {{{.*}}, rms}
// CHECK: return %[[N]], %[[D]]
func.func @distances_read_elsewhere(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
  %n = graph.constant dense<1.562500e-02> : tensor<f32>
  %eps = graph.constant dense<9.99999974E-6> : tensor<f32>
  %0 = graph.reduce sum %x {axes = array<i64: 1>, keepdims} : (tensor<4x64xf32>) -> tensor<4x1xf32>
  %1 = graph.mul %0, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %2 = graph.sub %x, %1 : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xf32>
  %3 = graph.mul %2, %2 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %4 = graph.reduce sum %3 {axes = array<i64: 1>, keepdims} : (tensor<4x64xf32>) -> tensor<4x1xf32>
  %5 = graph.mul %4, %n : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %6 = graph.add %5, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = graph.rsqrt %6 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = graph.mul %2, %7 : (tensor<4x64xf32>, tensor<4x1xf32>) -> tensor<4x64xf32>
  return %8, %2 : tensor<4x64xf32>, tensor<4x64xf32>
}

// -----

// CHECK-LABEL: @sum_read_elsewhere
// CHECK-NOT: graph.softmax
// CHECK: return
func.func @sum_read_elsewhere(%x: tensor<4x8xf32>, %y: tensor<4x1xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x1xf32>) {
  %0 = graph.reduce max %x {axes = array<i64: 1>, keepdims} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %1 = graph.sub %x, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %2 = graph.exp %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = graph.reduce sum %2 {axes = array<i64: 1>, keepdims} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %4 = graph.div %2, %3 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %5 = graph.log %3 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %6 = graph.sub %1, %5 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %7 = graph.div %y, %3 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %4, %6, %7 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x1xf32>
}
