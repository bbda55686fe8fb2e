// RUN: charonia-opt %s -form-kernels -verify-kernels | FileCheck %s
// RUN: charonia-opt %s -form-kernels -emit-tiles=target=x86-64-v4 -mlir-print-local-scope | FileCheck %s --check-prefix=TILE

// The code of a kernel is bounded, and with it the time that it takes to compile.

// Behind a product, whose tile has 28 registers, there is room for two sines.
// CHECK-LABEL: func.func @epilogue
// CHECK:         graph.kernel "matmul_sin_sin"
// CHECK:         graph.kernel "sin_sin_sin_sin"
// CHECK-NOT:     graph.kernel
// CHECK:         return
func.func @epilogue(%x: tensor<56x64xf32>, %w: tensor<64x64xf32>) -> tensor<56x64xf32> {
  %0 = graph.matmul %x, %w : (tensor<56x64xf32>, tensor<64x64xf32>) -> tensor<56x64xf32>
  %1 = graph.sin %0 : (tensor<56x64xf32>) -> tensor<56x64xf32>
  %2 = graph.sin %1 : (tensor<56x64xf32>) -> tensor<56x64xf32>
  %3 = graph.sin %2 : (tensor<56x64xf32>) -> tensor<56x64xf32>
  %4 = graph.sin %3 : (tensor<56x64xf32>) -> tensor<56x64xf32>
  %5 = graph.sin %4 : (tensor<56x64xf32>) -> tensor<56x64xf32>
  %6 = graph.sin %5 : (tensor<56x64xf32>) -> tensor<56x64xf32>
  return %6 : tensor<56x64xf32>
}

// Each sum reads its operand at two places, so one kernel for all would compute
// the first of them at 2^13 places.
// CHECK-LABEL: func.func @shifts
// CHECK-COUNT-2: graph.kernel
// CHECK-NOT:     graph.kernel
// CHECK:         return
func.func @shifts(%x0: tensor<16447xf32>) -> tensor<64xf32> {
  %a0 = graph.slice %x0 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16447xf32>) -> tensor<16446xf32>
  %b0 = graph.slice %x0 {starts = affine_map<() -> (1)>, steps = array<i64: 1>} : (tensor<16447xf32>) -> tensor<16446xf32>
  %x1 = graph.add %a0, %b0 : (tensor<16446xf32>, tensor<16446xf32>) -> tensor<16446xf32>
  %a1 = graph.slice %x1 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16446xf32>) -> tensor<16444xf32>
  %b1 = graph.slice %x1 {starts = affine_map<() -> (2)>, steps = array<i64: 1>} : (tensor<16446xf32>) -> tensor<16444xf32>
  %x2 = graph.add %a1, %b1 : (tensor<16444xf32>, tensor<16444xf32>) -> tensor<16444xf32>
  %a2 = graph.slice %x2 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16444xf32>) -> tensor<16440xf32>
  %b2 = graph.slice %x2 {starts = affine_map<() -> (4)>, steps = array<i64: 1>} : (tensor<16444xf32>) -> tensor<16440xf32>
  %x3 = graph.add %a2, %b2 : (tensor<16440xf32>, tensor<16440xf32>) -> tensor<16440xf32>
  %a3 = graph.slice %x3 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16440xf32>) -> tensor<16432xf32>
  %b3 = graph.slice %x3 {starts = affine_map<() -> (8)>, steps = array<i64: 1>} : (tensor<16440xf32>) -> tensor<16432xf32>
  %x4 = graph.add %a3, %b3 : (tensor<16432xf32>, tensor<16432xf32>) -> tensor<16432xf32>
  %a4 = graph.slice %x4 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16432xf32>) -> tensor<16416xf32>
  %b4 = graph.slice %x4 {starts = affine_map<() -> (16)>, steps = array<i64: 1>} : (tensor<16432xf32>) -> tensor<16416xf32>
  %x5 = graph.add %a4, %b4 : (tensor<16416xf32>, tensor<16416xf32>) -> tensor<16416xf32>
  %a5 = graph.slice %x5 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16416xf32>) -> tensor<16384xf32>
  %b5 = graph.slice %x5 {starts = affine_map<() -> (32)>, steps = array<i64: 1>} : (tensor<16416xf32>) -> tensor<16384xf32>
  %x6 = graph.add %a5, %b5 : (tensor<16384xf32>, tensor<16384xf32>) -> tensor<16384xf32>
  %a6 = graph.slice %x6 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16384xf32>) -> tensor<16320xf32>
  %b6 = graph.slice %x6 {starts = affine_map<() -> (64)>, steps = array<i64: 1>} : (tensor<16384xf32>) -> tensor<16320xf32>
  %x7 = graph.add %a6, %b6 : (tensor<16320xf32>, tensor<16320xf32>) -> tensor<16320xf32>
  %a7 = graph.slice %x7 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16320xf32>) -> tensor<16192xf32>
  %b7 = graph.slice %x7 {starts = affine_map<() -> (128)>, steps = array<i64: 1>} : (tensor<16320xf32>) -> tensor<16192xf32>
  %x8 = graph.add %a7, %b7 : (tensor<16192xf32>, tensor<16192xf32>) -> tensor<16192xf32>
  %a8 = graph.slice %x8 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<16192xf32>) -> tensor<15936xf32>
  %b8 = graph.slice %x8 {starts = affine_map<() -> (256)>, steps = array<i64: 1>} : (tensor<16192xf32>) -> tensor<15936xf32>
  %x9 = graph.add %a8, %b8 : (tensor<15936xf32>, tensor<15936xf32>) -> tensor<15936xf32>
  %a9 = graph.slice %x9 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<15936xf32>) -> tensor<15424xf32>
  %b9 = graph.slice %x9 {starts = affine_map<() -> (512)>, steps = array<i64: 1>} : (tensor<15936xf32>) -> tensor<15424xf32>
  %x10 = graph.add %a9, %b9 : (tensor<15424xf32>, tensor<15424xf32>) -> tensor<15424xf32>
  %a10 = graph.slice %x10 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<15424xf32>) -> tensor<14400xf32>
  %b10 = graph.slice %x10 {starts = affine_map<() -> (1024)>, steps = array<i64: 1>} : (tensor<15424xf32>) -> tensor<14400xf32>
  %x11 = graph.add %a10, %b10 : (tensor<14400xf32>, tensor<14400xf32>) -> tensor<14400xf32>
  %a11 = graph.slice %x11 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<14400xf32>) -> tensor<12352xf32>
  %b11 = graph.slice %x11 {starts = affine_map<() -> (2048)>, steps = array<i64: 1>} : (tensor<14400xf32>) -> tensor<12352xf32>
  %x12 = graph.add %a11, %b11 : (tensor<12352xf32>, tensor<12352xf32>) -> tensor<12352xf32>
  %a12 = graph.slice %x12 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<12352xf32>) -> tensor<8256xf32>
  %b12 = graph.slice %x12 {starts = affine_map<() -> (4096)>, steps = array<i64: 1>} : (tensor<12352xf32>) -> tensor<8256xf32>
  %x13 = graph.add %a12, %b12 : (tensor<8256xf32>, tensor<8256xf32>) -> tensor<8256xf32>
  %a13 = graph.slice %x13 {starts = affine_map<() -> (0)>, steps = array<i64: 1>} : (tensor<8256xf32>) -> tensor<64xf32>
  %b13 = graph.slice %x13 {starts = affine_map<() -> (8192)>, steps = array<i64: 1>} : (tensor<8256xf32>) -> tensor<64xf32>
  %x14 = graph.add %a13, %b13 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %x14 : tensor<64xf32>
}

// What is read twice at the same place is computed once: no tree of 2^8 leaves.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT:     graph.kernel
// CHECK:         return
func.func @shared(%x0: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %t0 = graph.tanh %x0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s0 = graph.sigmoid %x0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x1 = graph.mul %t0, %s0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t1 = graph.tanh %x1 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s1 = graph.sigmoid %x1 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x2 = graph.mul %t1, %s1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t2 = graph.tanh %x2 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s2 = graph.sigmoid %x2 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x3 = graph.mul %t2, %s2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t3 = graph.tanh %x3 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s3 = graph.sigmoid %x3 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x4 = graph.mul %t3, %s3 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t4 = graph.tanh %x4 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s4 = graph.sigmoid %x4 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x5 = graph.mul %t4, %s4 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t5 = graph.tanh %x5 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s5 = graph.sigmoid %x5 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x6 = graph.mul %t5, %s5 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t6 = graph.tanh %x6 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s6 = graph.sigmoid %x6 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x7 = graph.mul %t6, %s6 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t7 = graph.tanh %x7 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s7 = graph.sigmoid %x7 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %x8 = graph.mul %t7, %s7 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %x8 : tensor<64x64xf32>
}

// An element between sixteen is computed from them: what is in front of such an
// operator would be computed sixteen times, so it is stored. Any number of those
// that read one place are one kernel.
// CHECK-LABEL: func.func @cubic
// CHECK:         graph.kernel "resize"
// CHECK:         graph.kernel "resize.1"
// CHECK:         graph.kernel "resize.2"
// CHECK:         return
func.func @cubic(%x: tensor<4x64x64xf32>) -> tensor<4x64x64xf32> {
  %0 = graph.resize cubic %x {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %1 = graph.resize cubic %0 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %2 = graph.resize cubic %1 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  return %2 : tensor<4x64x64xf32>
}

// Of a result with a quarter of the elements each is computed once.
// CHECK-LABEL: func.func @shrunk
// CHECK:         graph.kernel "resize_resize"
// CHECK-NOT:     graph.kernel
// CHECK:         return
func.func @shrunk(%x: tensor<4x64x64xf32>) -> tensor<4x32x32xf32> {
  %0 = graph.resize linear %x {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %1 = graph.resize linear %0 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x32x32xf32>
  return %1 : tensor<4x32x32xf32>
}

// CHECK-LABEL: func.func @nearest
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT:     graph.kernel
// CHECK:         return
func.func @nearest(%x: tensor<4x64x64xf32>) -> tensor<4x64x64xf32> {
  %0 = graph.resize nearest %x {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %1 = graph.resize nearest %0 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %2 = graph.resize nearest %1 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %3 = graph.resize nearest %2 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %4 = graph.resize nearest %3 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  %5 = graph.resize nearest %4 {axes = array<i64: 1, 2>, coordinates = 0 : i32, cubic_coeff = -7.500000e-01 : f64, nearest = 0 : i32, scales = array<f64: 0.000000e+00, 0.000000e+00>} : (tensor<4x64x64xf32>) -> tensor<4x64x64xf32>
  return %5 : tensor<4x64x64xf32>
}

// A tile of eight registers, where the code is short ...
// TILE-LABEL: func.func @sin{{.*}}tile.grid = affine_map<() -> (2)>
// TILE:       math.sin %{{.*}} : tensor<128xf32>
// CHECK-LABEL: func.func @short
func.func @short(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = graph.sin %x : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// ... and of one, where it is long.
// TILE-LABEL: func.func @sin{{.*}}tile.grid = affine_map<() -> (16)>
// TILE-COUNT-24: math.sin %{{.*}} : tensor<16xf32>
// CHECK-LABEL: func.func @long
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT:     graph.kernel
func.func @long(%x0: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %x1 = graph.sin %x0 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x2 = graph.sin %x1 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x3 = graph.sin %x2 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x4 = graph.sin %x3 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x5 = graph.sin %x4 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x6 = graph.sin %x5 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x7 = graph.sin %x6 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x8 = graph.sin %x7 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x9 = graph.sin %x8 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x10 = graph.sin %x9 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x11 = graph.sin %x10 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x12 = graph.sin %x11 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x13 = graph.sin %x12 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x14 = graph.sin %x13 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x15 = graph.sin %x14 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x16 = graph.sin %x15 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x17 = graph.sin %x16 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x18 = graph.sin %x17 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x19 = graph.sin %x18 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x20 = graph.sin %x19 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x21 = graph.sin %x20 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x22 = graph.sin %x21 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x23 = graph.sin %x22 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %x24 = graph.sin %x23 : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %x24 : tensor<16x16xf32>
}

// Nine terms of a row at once, where the code of one is short ...
// TILE-LABEL: func.func @reduce_exp(
// TILE-NOT:   scf.for
// TILE:       math.exp %{{.*}} : tensor<64x9xf32>
// CHECK-LABEL: func.func @short_terms
func.func @short_terms(%x: tensor<64x9x1xf32>) -> tensor<64x1xf32> {
  %0 = graph.exp %x : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %1 = graph.reduce sum %0 {axes = array<i64: 1>} : (tensor<64x9x1xf32>) -> tensor<64x1xf32>
  return %1 : tensor<64x1xf32>
}

// ... and one after the other, where it is long.
// TILE-LABEL: func.func @reduce_sin_sin{{.*}}
// TILE:       scf.for
// TILE-COUNT-8: math.sin %{{.*}} : tensor<32xf32>
// CHECK-LABEL: func.func @long_terms
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT:     graph.kernel
func.func @long_terms(%x0: tensor<64x9x1xf32>) -> tensor<64x1xf32> {
  %x1 = graph.sin %x0 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %x2 = graph.sin %x1 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %x3 = graph.sin %x2 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %x4 = graph.sin %x3 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %x5 = graph.sin %x4 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %x6 = graph.sin %x5 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %x7 = graph.sin %x6 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %x8 = graph.sin %x7 : (tensor<64x9x1xf32>) -> tensor<64x9x1xf32>
  %y = graph.reduce sum %x8 {axes = array<i64: 1>} : (tensor<64x9x1xf32>) -> tensor<64x1xf32>
  return %y : tensor<64x1xf32>
}
