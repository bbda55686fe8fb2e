// RUN: charonia-opt %s -expand-math | FileCheck %s
// Conversions of floats of 8 bits become arithmetic.
// CHECK-LABEL: func @narrow
// CHECK-NOT: arith.truncf
// CHECK: arith.minui
// CHECK: %[[CODE:.*]] = arith.trunci {{.*}} : tensor<4xi32> to tensor<4xi8>
// CHECK: arith.bitcast %[[CODE]] : tensor<4xi8> to tensor<4xf8E4M3FN>
func.func @narrow(%x: tensor<4xf32>) -> tensor<4xf8E4M3FN> {
  %y = arith.truncf %x : tensor<4xf32> to tensor<4xf8E4M3FN>
  return %y : tensor<4xf8E4M3FN>
}
// From f64 by f32 rounded to odd, so that it is rounded once.
// CHECK-LABEL: func @odd
// CHECK: arith.truncf {{.*}} : f64 to f32
// CHECK: arith.ori
// CHECK: arith.trunci {{.*}} : i32 to i8
func.func @odd(%x: f64) -> f8E5M2 {
  %y = arith.truncf %x : f64 to f8E5M2
  return %y : f8E5M2
}
// Codes are the end of those of f16.
// CHECK-LABEL: func @wide
// CHECK: arith.bitcast %{{.*}} : tensor<4xi16> to tensor<4xf16>
// CHECK: arith.extf {{.*}} : tensor<4xf16> to tensor<4xf32>
func.func @wide(%x: tensor<4xf8E4M3FN>) -> tensor<4xf32> {
  %y = arith.extf %x : tensor<4xf8E4M3FN> to tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func @unsigned_zero
// CHECK-NOT: f16
// CHECK: arith.subf
func.func @unsigned_zero(%x: f8E5M2FNUZ) -> f32 {
  %y = arith.extf %x : f8E5M2FNUZ to f32
  return %y : f32
}
