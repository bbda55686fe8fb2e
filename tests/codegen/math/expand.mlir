// RUN: charonia-opt %s -expand-math | FileCheck %s
// Elementary functions of tiles and scalars become arithmetic; what every target has
// stays, powers by constants are products where these are rounded once.
// CHECK-LABEL: func @tile
// CHECK-NOT: math.exp
// CHECK: math.fma
// CHECK: arith.bitcast
// CHECK: arith.select
func.func @tile(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = math.exp %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
// CHECK-LABEL: func @kept
// CHECK: math.sqrt
// CHECK: math.floor
func.func @kept(%x: f64) -> f64 {
  %y = math.sqrt %x : f64
  %z = math.floor %y : f64
  return %z : f64
}
// CHECK-LABEL: func @square
// CHECK-NOT: math.powf
// CHECK: %[[S:.*]] = arith.mulf %arg0, %arg0
// CHECK: return %[[S]]
func.func @square(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %y = math.powf %x, %two : tensor<8xf32>
  return %y : tensor<8xf32>
}
// The fourth power is as any other, whether its exponent shows or not.
// CHECK-LABEL: func @fourth
// CHECK: math.fma
// CHECK: return
func.func @fourth(%x: tensor<8xf32>) -> tensor<8xf32> {
  %four = arith.constant dense<4.0> : tensor<8xf32>
  %y = math.powf %x, %four : tensor<8xf32>
  return %y : tensor<8xf32>
}
// CHECK-LABEL: func @half
// CHECK: math.exp {{.*}} : f16
func.func @half(%x: f16) -> f16 {
  %y = math.exp %x : f16
  return %y : f16
}
// Of quotients by constants no division is left; by numbers below 1, which may overflow, and
// approximate ones stay.
// CHECK-LABEL: func @quotient
// CHECK-NOT: arith.divf
// CHECK: arith.mulf
// CHECK: math.fma
// CHECK: arith.select
// CHECK-NOT: math.fma
// CHECK: arith.mulf
// CHECK: arith.divf {{.*}} fastmath<afn>
// CHECK: arith.divf
func.func @quotient(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %seven = arith.constant dense<7.0> : tensor<8xf32>
  %eight = arith.constant dense<8.0> : tensor<8xf32>
  %tenth = arith.constant dense<0.1> : tensor<8xf32>
  %a = arith.divf %x, %seven : tensor<8xf32>
  %b = arith.divf %x, %eight : tensor<8xf32>
  %c = arith.divf %x, %seven fastmath<afn> : tensor<8xf32>
  %d = arith.divf %x, %tenth : tensor<8xf32>
  return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
