// A bias is loaded before the operands of the products, so that it comes while they run;
// an operand's own load stays where it is.
// RUN: charonia-ptx %s --assemble=0 --ptx | FileCheck %s

// CHECK-LABEL: .entry bias(
// CHECK:       ld.global.v2.b32
// CHECK:       cp.async
// CHECK:       mma.sync
// CHECK-NOT:   ld.global
// CHECK:       st.global
func.func @bias(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %b: !tile.buffer<f32>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 4 : i64} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %a = tile.load %A[%k] {map = affine_map<(d0, d1)[s0] -> (d0, d1 + s0 * 32)>, shape = affine_map<()[s0] -> (64, 256)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x32xf16>
    %w = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 32, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<32x64xf16>
    %p = tile.dot %a, %w, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }
  %bias = tile.load %b[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (64)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<64xf32>
  %all = tile.broadcast %bias {axes = array<i64: 1>} : tensor<64xf32> -> tensor<64x64xf32>
  %r = arith.addf %d, %all : tensor<64x64xf32>
  tile.store %r, %C[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf32>, !tile.buffer<f32>
  return
}

// What is added to the products and is too much to be held beside them is loaded behind them, though it was written in front, as the left side of the sum.
// CHECK-LABEL: .entry residual(
// CHECK-NOT:   ld.global
// CHECK:       cp.async
// CHECK-NOT:   ld.global
// CHECK:       mma.sync
// CHECK:       ld.global
// CHECK:       st.global
func.func @residual(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %b: !tile.buffer<f32>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>, tile.warps = 4 : i64} {
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %two = arith.constant dense<2.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %x = tile.load %b[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (128, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<128x64xf32>
  %twice = arith.mulf %x, %two : tensor<128x64xf32>
  %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> tensor<128x64xf32> {
    %a = tile.load %A[%k] {map = affine_map<(d0, d1)[s0] -> (d0, d1 + s0 * 32)>, shape = affine_map<()[s0] -> (128, 256)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<128x32xf16>
    %w = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 32, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<32x64xf16>
    %p = tile.dot %a, %w, %acc : tensor<128x32xf16>, tensor<32x64xf16> -> tensor<128x64xf32>
    scf.yield %p : tensor<128x64xf32>
  }
  %r = arith.addf %twice, %d : tensor<128x64xf32>
  tile.store %r, %C[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (128, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<128x64xf32>, !tile.buffer<f32>
  return
}

// Without products: what scales and shifts the rows is on its way before the
// threads meet, and what two walks read is loaded once.
// CHECK-LABEL: .entry normalize(
// CHECK:       ld.global
// CHECK:       ld.global.nc.v4.b32
// CHECK:       shfl.sync
// CHECK:       bar.sync
// CHECK-NOT:   ld.global
// CHECK:       st.global
func.func @normalize(%x: !tile.buffer<f16>, %g: !tile.buffer<f16>, %y: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (128)>, tile.warps = 4 : i64} {
  %row = tile.program_id : index
  %a = tile.load %x[%row] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (128, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<1024xf16>
  %first = arith.extf %a : tensor<1024xf16> to tensor<1024xf32>
  %sum = tile.reduce %first {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<f32> {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tile.yield %s : f32
  }
  %all = tile.broadcast %sum {axes = array<i64>} : tensor<f32> -> tensor<1024xf32>
  %b = tile.load %x[%row] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (128, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<1024xf16>
  %second = arith.extf %b : tensor<1024xf16> to tensor<1024xf32>
  %c = arith.subf %second, %all : tensor<1024xf32>
  %w = tile.load %g[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (1024)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>) -> tensor<1024xf16>
  %scale = arith.extf %w : tensor<1024xf16> to tensor<1024xf32>
  %d = arith.mulf %c, %scale : tensor<1024xf32>
  %e = arith.truncf %d : tensor<1024xf32> to tensor<1024xf16>
  tile.store %e, %y[%row] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (128, 1024)>, rank = 2 : i64, checks = array<i64>} : tensor<1024xf16>, !tile.buffer<f16>, index
  return
}
