// Beside a row that is kept in all that is left of shared memory two tiles have one place, one
// behind the other.
// RUN: charonia-ptx %s --arch sm_90a --assemble=0 2>&1 | FileCheck %s
// CHECK: 512 threads, 231424 bytes shared
func.func @rows(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>, %arg2: !tile.buffer<f16>, %b0: !tile.buffer<f32>, %b1: !tile.buffer<f32>, %b2: !tile.buffer<f32>) attributes {tile.grid = affine_map<() -> (4)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cn = arith.constant 14 : index
  %least = arith.constant dense<0xFC00> : tensor<8192xf16>
  %most = scf.for %i = %c0 to %cn step %c1 iter_args(%top = %least) -> (tensor<8192xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 114688)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %next = arith.maximumf %top, %x : tensor<8192xf16>
    scf.yield %next : tensor<8192xf16>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<8192xf16>) -> tensor<f16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.maximumf %a, %b : f16
    tile.yield %m : f16
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f16> -> tensor<8192xf16>
  %x9 = tile.load %b0[] {checks = array<i64>, map = affine_map<(d0, d1) -> (d0, d1)>, rank = 2 : i64, shape = affine_map<() -> (512, 32)>} : (!tile.buffer<f32>) -> tensor<512x32xf32>
  %y9 = tile.load %b1[] {checks = array<i64>, map = affine_map<(d0, d1) -> (d0, d1)>, rank = 2 : i64, shape = affine_map<() -> (512, 32)>} : (!tile.buffer<f32>) -> tensor<512x32xf32>
  %aa = tile.reduce %x9 {axis = 1 : i64} : (tensor<512x32xf32>) -> tensor<512xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %bb = tile.reduce %y9 {axis = 1 : i64} : (tensor<512x32xf32>) -> tensor<512xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %u9 = tile.broadcast %aa {axes = array<i64: 0>} : tensor<512xf32> -> tensor<512x128xf32>
  %v9 = tile.broadcast %bb {axes = array<i64: 0>} : tensor<512xf32> -> tensor<512x128xf32>
  %z9 = arith.mulf %u9, %v9 : tensor<512x128xf32>
  tile.store %z9, %b2[] {checks = array<i64>, map = affine_map<(d0, d1) -> (d0, d1)>, rank = 2 : i64, shape = affine_map<() -> (512, 128)>} : tensor<512x128xf32>, !tile.buffer<f32>
  scf.for %i = %c0 to %cn step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 114688)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %y = arith.subf %x, %wide : tensor<8192xf16>
    tile.store %y, %arg2[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 114688)>} : tensor<8192xf16>, !tile.buffer<f16>, index, index
  }
  return
}
