// RUN: charonia-opt %s -simplify-algebra | FileCheck %s

!t = tensor<4x8xf32>

// CHECK-LABEL: @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: !t) -> !t {
  %0 = graph.constant dense<0.0> : tensor<f32>
  %1 = graph.constant dense<1.0> : tensor<1x1xf32>
  %inf = graph.constant dense<0xFF800000> : tensor<f32>
  %a = graph.add %0, %x : (tensor<f32>, !t) -> !t
  %b = graph.mul %a, %1 : (!t, tensor<1x1xf32>) -> !t
  %c = graph.div %b, %1 : (!t, tensor<1x1xf32>) -> !t
  %d = graph.sub %c, %0 : (!t, tensor<f32>) -> !t
  %e = graph.neg %d : (!t) -> !t
  %f = graph.neg %e : (!t) -> !t
  %g = graph.max %f, %inf : (!t, tensor<f32>) -> !t
  %h = graph.pow %g, %1 : (!t, tensor<1x1xf32>) -> !t
  return %h : !t
}

// The shape of the result is kept where the neutral element had it.
// CHECK-LABEL: @neutral_broadcasts
// CHECK-NEXT: graph.broadcast %arg0 : (tensor<8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: return
func.func @neutral_broadcasts(%x: tensor<8xf32>) -> !t {
  %0 = graph.constant dense<0.0> : !t
  %a = graph.add %x, %0 : (tensor<8xf32>, !t) -> !t
  return %a : !t
}

// CHECK-LABEL: @quotients
// CHECK-DAG: %[[EIGHTH:.*]] = graph.constant dense<1.250000e-01> : tensor<f32>
// CHECK-DAG: graph.mul %arg0, %[[EIGHTH]]
// CHECK-DAG: graph.reciprocal %arg1
// CHECK-DAG: graph.rsqrt %arg1
// CHECK-NOT: graph.div
func.func @quotients(%x: !t, %y: !t) -> (!t, !t, !t) {
  %c = graph.constant dense<8.0> : tensor<f32>
  %a = graph.div %x, %c : (!t, tensor<f32>) -> !t
  %one = graph.constant dense<1.0> : tensor<f32>
  %b = graph.div %one, %y : (tensor<f32>, !t) -> !t
  %half = graph.constant dense<-0.5> : tensor<f32>
  %d = graph.pow %y, %half : (!t, tensor<f32>) -> !t
  return %a, %b, %d : !t, !t, !t
}

// A third is no float, whatever is divided and whoever reads it: 49 * (1 / 49) is below 1. Nor is a root's reciprocal
// what rounding twice gives.
// CHECK-LABEL: @rounded_quotients
// CHECK-NEXT: %[[C:.*]] = graph.constant dense<4.900000e+01>
// CHECK-NEXT: %[[A:.*]] = graph.div %arg0, %[[C]]
// CHECK-NEXT: %[[B:.*]] = graph.div %arg1, %[[C]]
// CHECK-NEXT: %[[S:.*]] = graph.sqrt %arg0
// CHECK-NEXT: %[[D:.*]] = graph.div %arg0, %[[S]]
// CHECK-NEXT: %[[E:.*]] = graph.reciprocal %[[S]]
// CHECK-NEXT: %[[F:.*]] = graph.reciprocal %[[E]]
// CHECK-NEXT: return %[[A]], %[[B]], %[[D]], %[[F]]
func.func @rounded_quotients(%x: !t, %y: tensor<1xf32>) -> (!t, tensor<1xf32>, !t, !t) {
  %c = graph.constant dense<49.0> : tensor<f32>
  %a = graph.div %x, %c : (!t, tensor<f32>) -> !t
  %b = graph.div %y, %c : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  %s = graph.sqrt %x : (!t) -> !t
  %d = graph.div %x, %s : (!t, !t) -> !t
  %e = graph.reciprocal %s : (!t) -> !t
  %f = graph.reciprocal %e : (!t) -> !t
  return %a, %b, %d, %f : !t, tensor<1xf32>, !t, !t
}

// Integers divide, too.
// CHECK-LABEL: @integers
// CHECK: graph.div
func.func @integers(%i: tensor<4xi32>) -> tensor<4xi32> {
  %two = graph.constant dense<2> : tensor<i32>
  %a = graph.div %i, %two : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  return %a : tensor<4xi32>
}

// CHECK-LABEL: @powers
// CHECK-DAG: graph.mul %arg0, %arg0
// CHECK-DAG: graph.sqrt %arg0
// CHECK-NOT: graph.pow
func.func @powers(%x: !t) -> (!t, !t) {
  %two = graph.constant dense<2> : tensor<i64>
  %a = graph.pow %x, %two : (!t, tensor<i64>) -> !t
  %half = graph.constant dense<0.5> : tensor<f32>
  %b = graph.pow %x, %half : (!t, tensor<f32>) -> !t
  return %a, %b : !t, !t
}

// Products by a power of two are exact. Constants of others, and of sums, stay
// apart: each product and each sum is a number of its own, which something else
// may be compared to.
// CHECK-LABEL: @chains
// CHECK-DAG: %[[SIX:.*]] = graph.constant dense<6.000000e+00>
// CHECK-DAG: %[[THREE:.*]] = graph.constant dense<3.000000e+00>
// CHECK-DAG: %[[FIVE:.*]] = graph.constant dense<5.000000e+00>
// CHECK-DAG: %[[MINUS:.*]] = graph.constant dense<-5.000000e+00>
// CHECK: %[[A:.*]] = graph.mul %arg0, %[[SIX]]
// CHECK-NEXT: %[[B:.*]] = graph.mul %[[A]], %[[FIVE]]
// CHECK-NEXT: %[[C:.*]] = graph.add %arg0, %[[THREE]]
// CHECK-NEXT: %[[D:.*]] = graph.add %[[C]], %[[MINUS]]
// CHECK-NEXT: return %[[B]], %[[D]]
func.func @chains(%x: !t) -> (!t, !t) {
  %two = graph.constant dense<2.0> : tensor<f32>
  %three = graph.constant dense<3.0> : tensor<f32>
  %five = graph.constant dense<5.0> : tensor<f32>
  %a = graph.mul %x, %two : (!t, tensor<f32>) -> !t
  %b = graph.mul %a, %three : (!t, tensor<f32>) -> !t
  %e = graph.mul %b, %five : (!t, tensor<f32>) -> !t
  %c = graph.add %x, %three : (!t, tensor<f32>) -> !t
  %d = graph.sub %c, %five : (!t, tensor<f32>) -> !t
  return %e, %d : !t, !t
}

// relu6 written as two clips.
// CHECK-LABEL: @bounds
// CHECK-COUNT-1: graph.max
// CHECK-NOT: graph.max
// CHECK: graph.min
func.func @bounds(%x: !t) -> !t {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %six = graph.constant dense<6.0> : tensor<f32>
  %minus = graph.constant dense<-1.0> : tensor<f32>
  %a = graph.max %x, %minus : (!t, tensor<f32>) -> !t
  %b = graph.max %a, %zero : (!t, tensor<f32>) -> !t
  %c = graph.min %b, %six : (!t, tensor<f32>) -> !t
  return %c : !t
}

// CHECK-LABEL: @logic
// CHECK-NEXT: graph.select %arg0, %arg2, %arg1
// CHECK-NEXT: graph.softmax %arg1 {axis = 1 : i64, log}
// CHECK-NEXT: return
func.func @logic(%c: tensor<4x8xi1>, %x: !t, %y: !t) -> (!t, !t) {
  %true = graph.constant dense<true> : tensor<i1>
  %both = graph.and %c, %true : (tensor<4x8xi1>, tensor<i1>) -> tensor<4x8xi1>
  %n = graph.not %both : (tensor<4x8xi1>) -> tensor<4x8xi1>
  %a = graph.select %n, %x, %y : (tensor<4x8xi1>, !t, !t) -> !t
  %s = graph.softmax %x {axis = 1 : i64} : (!t) -> !t
  %l = graph.log %s : (!t) -> !t
  return %a, %l : !t, !t
}

// CHECK-LABEL: @truth
// CHECK-NEXT: return %arg0
func.func @truth(%c: tensor<4x8xi1>) -> tensor<4x8xi1> {
  %true = graph.constant dense<true> : tensor<i1>
  %false = graph.constant dense<false> : tensor<i1>
  %a = graph.select %c, %false, %true : (tensor<4x8xi1>, tensor<i1>, tensor<i1>) -> tensor<4x8xi1>
  %b = graph.select %a, %false, %true : (tensor<4x8xi1>, tensor<i1>, tensor<i1>) -> tensor<4x8xi1>
  return %b : tensor<4x8xi1>
}
