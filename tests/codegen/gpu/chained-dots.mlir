// Two products of which the first one's result, cut to keys that exist, is the left operand
// of the second: it stays in registers, and whole blocks of keys are not looked at.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --boxes=0 --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=SIMT < %t/chain.2-simt.mlir

// What is outside of the loop is fenced outside of it.
// SIMT: simt.wait_async 1
// SIMT-NEXT: simt.fence_shared
// SIMT: scf.for
// SIMT:   simt.wait_async 0
// SIMT-NEXT: simt.fence_shared
// SIMT-NEXT: simt.barrier
// SIMT-NOT: simt.fence_shared
// SIMT:   simt.warpgroup_dot {{.*}} : !simt.memory<64x64xf16
// SIMT:   simt.wait_dots 0
// SIMT:   scf.if
// SIMT-NEXT: scf.yield
// SIMT:   } else {
// SIMT:     tile.in_bounds
// SIMT:     arith.select
// SIMT:   arith.truncf
// SIMT-NOT: simt.store_shared
// SIMT:   simt.warpgroup_dot {{.*}} : tensor<64x64xf16
// SIMT:   simt.wait_dots 0
// SIMT:   scf.yield

// PTX: .minnctapersm 3
// The first product starts from nothing.
// PTX-DAG: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{[{].*[}]}}, %rd
// PTX-DAG: cvt.rn.f16x2.f32
// PTX-DAG: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{[{].*[}], [{].*[}]}}, %rd{{[0-9]+}}, p, 1, 1, 1; }
// PTX-DAG: setp.ne.b32 p, 0, 0
func.func @chain(%Q: !tile.buffer<f16>, %K: !tile.buffer<f16>, %V: !tile.buffer<f16>, %Y: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 4 : i64, tile.stages = 2 : i64, tile.residents = 3 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %low = arith.constant dense<-1.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 5 : index
  %q = tile.load %Q[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
  %y = scf.for %k = %c0 to %steps step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) {
    %kt = tile.load %K[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d1, d0)>, shape = affine_map<()[s0] -> (300, 64)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %s = tile.dot %q, %kt, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %in = tile.in_bounds [%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d1)>, shape = affine_map<()[s0] -> (300)>} : (index) -> tensor<64x64xi1>
    %kept = arith.select %in, %s, %low : tensor<64x64xi1>, tensor<64x64xf32>
    %p = arith.truncf %kept : tensor<64x64xf32> to tensor<64x64xf16>
    %v = tile.load %V[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (300, 64)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %d = tile.dot %p, %v, %sum : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %y, %Y[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf32>, !tile.buffer<f32>, index
  return
}
