// Floats of 8 bits: two are converted in one instruction where the chip has one, and multiplied as
// they are by wgmma. Elsewhere that is arithmetic, and products of f16.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --boxes=0 --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefixes=CHECK,HOPPER
// RUN: FileCheck %s --check-prefix=SIMT < %t/gemm.2-simt.mlir
// RUN: charonia-ptx %s --arch sm_80 --assemble=0 --ptx | FileCheck %s --check-prefixes=CHECK,AMPERE

// A clamp does what the instruction does, so nothing else is to be done.
// CHECK-LABEL: .visible .entry clamped(
// HOPPER-COUNT-2: cvt.rn.satfinite.e4m3x2.f32
// HOPPER-NOT: selp
// AMPERE-NOT: e4m3x2
// CHECK: st.global
func.func @clamped(%a: !tile.buffer<f32>, %o: !tile.buffer<f8E4M3FN>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (8)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %a[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (4096)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<512xf32>
  %least = arith.constant dense<-448.0> : tensor<512xf32>
  %most = arith.constant dense<448.0> : tensor<512xf32>
  %l = arith.maximumf %x, %least : tensor<512xf32>
  %m = arith.minimumf %l, %most : tensor<512xf32>
  %y = arith.truncf %m : tensor<512xf32> to tensor<512xf8E4M3FN>
  tile.store %y, %o[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (4096)>, rank = 1 : i64, checks = array<i64>} : tensor<512xf8E4M3FN>, !tile.buffer<f8E4M3FN>, index
  return
}

// What is too large becomes infinite without one.
// CHECK-LABEL: .visible .entry to_infinity(
// HOPPER-COUNT-2: cvt.rn.satfinite.e5m2x2.f32
// HOPPER: selp
// CHECK: st.global
func.func @to_infinity(%a: !tile.buffer<f32>, %o: !tile.buffer<f8E5M2>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (8)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %a[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (4096)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<512xf32>
  %y = arith.truncf %x : tensor<512xf32> to tensor<512xf8E5M2>
  tile.store %y, %o[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (4096)>, rank = 1 : i64, checks = array<i64>} : tensor<512xf8E5M2>, !tile.buffer<f8E5M2>, index
  return
}

// Sums of a step are added to the others in f32: the instruction's own keep fewer bits. Those of a
// step are added under the products of the next one; of ten steps five are written out, and behind
// the last one nothing is under way.
// SIMT: scf.for {{.*}} iter_args(%[[SUM:[^ ]+]] = %[[ZERO:[^,]+]],
// SIMT:   %[[FIRST:.+]] = simt.warpgroup_dot {{.*}}, %[[ZERO]] {
// SIMT-NOT: simt.wait_dots
// SIMT:   simt.barrier
// SIMT:   %[[SECOND:.+]] = simt.warpgroup_dot {{.*}}, %[[ZERO]] {
// SIMT:   simt.copy_async
// SIMT:   %[[DONE:.+]] = simt.wait_dots 1, %[[FIRST]] :
// SIMT:   %[[TOTAL:.+]] = arith.addf %[[SUM]], %[[DONE]] :
// SIMT-COUNT-2: simt.warpgroup_dot
// SIMT:   %[[LAST:.+]] = simt.warpgroup_dot
// SIMT:   simt.wait_dots 1,
// SIMT:   simt.wait_dots 0, %[[LAST]] :
// SIMT-NOT: simt.warpgroup_dot
// SIMT:   scf.yield
// SIMT: simt.written_out = 252
// SIMT-NOT: simt.w{{arpgroup_dot|ait_dots}}
// CHECK-LABEL: .visible .entry gemm(
// HOPPER: .minnctapersm 2
// HOPPER: .pragma "nounroll"
// HOPPER-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3
// HOPPER: wgmma.wait_group.sync.aligned 1
// HOPPER: add.{{(rn\.)?}}f32
// AMPERE: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
func.func @gemm(%A: !tile.buffer<f8E4M3FN>, %B: !tile.buffer<f8E4M3FN>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (32)>, tile.warps = 4 : i64, tile.stages = 3 : i64} {
  %pid = tile.program_id : index
  %four = arith.constant 4 : index
  %m = arith.divui %pid, %four : index
  %n = arith.remui %pid, %four : index
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 10 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 1280)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f8E4M3FN>, index, index) -> tensor<64x128xf8E4M3FN>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d1, s1 * 128 + d0)>, shape = affine_map<()[s0, s1] -> (512, 1280)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f8E4M3FN>, index, index) -> tensor<128x128xf8E4M3FN>
    %d = tile.dot %a, %b, %zero : tensor<64x128xf8E4M3FN>, tensor<128x128xf8E4M3FN> -> tensor<64x128xf32>
    %s = arith.addf %acc, %d : tensor<64x128xf32>
    scf.yield %s : tensor<64x128xf32>
  }
  tile.store %c, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 512)>, rank = 2 : i64, checks = array<i64>} : tensor<64x128xf32>, !tile.buffer<f32>, index, index
  return
}

// Of more columns registers hold one set of sums beside the total, which are waited for in each step.
// CHECK-LABEL: .visible .entry wide(
// HOPPER: wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3
// HOPPER-NOT: wgmma.wait_group.sync.aligned 1
// HOPPER: wgmma.wait_group.sync.aligned 0
func.func @wide(%A: !tile.buffer<f8E4M3FN>, %B: !tile.buffer<f8E4M3FN>, %C: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (32)>, tile.warps = 4 : i64, tile.stages = 3 : i64} {
  %pid = tile.program_id : index
  %four = arith.constant 4 : index
  %m = arith.divui %pid, %four : index
  %n = arith.remui %pid, %four : index
  %zero = arith.constant dense<0.0> : tensor<64x256xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 10 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x256xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 1280)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f8E4M3FN>, index, index) -> tensor<64x128xf8E4M3FN>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 256 + d1, s1 * 128 + d0)>, shape = affine_map<()[s0, s1] -> (1024, 1280)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f8E4M3FN>, index, index) -> tensor<128x256xf8E4M3FN>
    %d = tile.dot %a, %b, %zero : tensor<64x128xf8E4M3FN>, tensor<128x256xf8E4M3FN> -> tensor<64x256xf32>
    %s = arith.addf %acc, %d : tensor<64x256xf32>
    scf.yield %s : tensor<64x256xf32>
  }
  tile.store %c, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 256 + d1)>, shape = affine_map<()[s0, s1] -> (512, 1024)>, rank = 2 : i64, checks = array<i64>} : tensor<64x256xf32>, !tile.buffer<f32>, index, index
  return
}
