// A matrix product on a chip with wgmma: operands by asynchronous copies in a ring of
// swizzled slots, one dot of all terms a step, the one before it still under way.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --boxes=0 --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=SIMT < %t/gemm.2-simt.mlir

// SIMT: simt.alloc {managed, offset = 0 : i64, slots = 4 : i64} : <128x64xf16, {{.*}}[0, 32], [1, 8], [2, 16], [4, 32], [8, 0]
// SIMT: simt.alloc {managed, offset = 65536 : i64, slots = 4 : i64} : <64x128xf16
// Four slots are two iterations ahead: one is read, one still may be.
// SIMT-COUNT-2: simt.commit_async
// SIMT-NOT: simt.commit_async
// SIMT: scf.for
// SIMT:   simt.wait_async 1
// SIMT-NEXT: simt.fence_shared
// SIMT-NEXT: simt.barrier
// SIMT:   simt.warpgroup_dot {{.*}} {columns = 1 : i64, rows = 2 : i64}
// SIMT:   simt.copy_async
// SIMT:   simt.copy_async
// SIMT:   simt.commit_async
// SIMT-NEXT: simt.wait_dots 1
// SIMT-NOT: simt.barrier
// SIMT:   scf.yield
// SIMT: simt.wait_dots 0, {{.*}}tensor<128x128xf32
// The result goes through shared memory, which dots have read: a barrier first.
// SIMT: simt.barrier
// SIMT: simt.store_shared

// PTX: .target sm_90a
// PTX: fence.proxy.async.shared::cta
// PTX: bar.sync
// PTX: wgmma.fence.sync.aligned
// PTX-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// PTX: wgmma.commit_group.sync.aligned
// PTX: cp.async.cg.shared.global
// PTX: wgmma.wait_group.sync.aligned 	1
// PTX: wgmma.wait_group.sync.aligned 0
// PTX: st.global.v4
func.func @gemm(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (16)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %four = arith.constant 4 : index
  %m = arith.divui %pid, %four : index
  %n = arith.remui %pid, %four : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (512, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (1024, 512)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 512)>, rank = 2 : i64, checks = array<i64>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index
  return
}
