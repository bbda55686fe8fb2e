// A loop of no more iterations than its ring has slots: all copies are issued in front of
// it, one group for each iteration, and none inside; an empty group an iteration keeps the
// distance of what is waited for.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --boxes=0 --dump-dir %t --assemble=0
// RUN: FileCheck %s --check-prefix=GROUP < %t/group.2-simt.mlir
// RUN: FileCheck %s --check-prefix=WARPS < %t/warps.2-simt.mlir

// GROUP: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 4 : i64} : <64x64xf16
// GROUP-COUNT-4: simt.commit_async
// GROUP-NOT: simt.commit_async
// GROUP: scf.for
// GROUP:   simt.wait_async 3
// GROUP:   simt.barrier
// GROUP:   simt.warpgroup_dot
// GROUP-NOT: simt.copy_async
// GROUP:   simt.commit_async
// GROUP-NEXT: simt.wait_dots 1
// GROUP:   scf.yield
func.func @group(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (16)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %four = arith.constant 4 : index
  %m = arith.divui %pid, %four : index
  %n = arith.remui %pid, %four : index
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 256)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (256, 512)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  %r = arith.truncf %c : tensor<64x128xf32> to tensor<64x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (256, 512)>, rank = 2 : i64, checks = array<i64>} : tensor<64x128xf16>, !tile.buffer<f16>, index, index
  return
}

// Two iterations in a ring of three are two slots.
// WARPS: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 2 : i64} : <64x32xf16
// WARPS-COUNT-2: simt.commit_async
// WARPS: simt.wait_async 1
// WARPS: simt.load_shared
// WARPS: scf.for
// WARPS-NOT: simt.copy_async
// WARPS:   simt.commit_async
// WARPS:   simt.wait_async 1
// WARPS:   scf.yield
func.func @warps(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (16)>, tile.warps = 4 : i64, tile.stages = 3 : i64} {
  %pid = tile.program_id : index
  %four = arith.constant 4 : index
  %m = arith.divui %pid, %four : index
  %n = arith.remui %pid, %four : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 2 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 32 + d1)>, shape = affine_map<()[s0, s1] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x32xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 32 + d0, s0 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (64, 256)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<32x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>, index, index
  return
}
