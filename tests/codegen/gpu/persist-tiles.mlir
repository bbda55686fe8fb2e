// A product of 256 terms whose right operand is the same for all 800 tiles: three instances have room on
// each of 132 multiprocessors, three rounds. They copy that operand once, and what the next tile reads
// behind the last product of one; rows that do not end with a tile, or an operand that moves with every
// tile, change nothing of what the kernel was.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --boxes=0 --dump-dir %t --assemble=0
// RUN: FileCheck %s --check-prefix=FEW < %t/few.2-simt.mlir
// RUN: FileCheck %s --check-prefix=MOVES < %t/moves.2-simt.mlir
// RUN: FileCheck %s --check-prefix=BLOCKS < %t/blocks.2-simt.mlir

// FEW: tile.grid = affine_map<() -> (396)>
// FEW: simt.copy_async %arg1[%c0
// FEW: simt.copy_async %arg1[%c3
// FEW-NEXT: simt.commit_async
// FEW-NOT: simt.copy_async %arg1
// FEW: simt.wait_dependencies
// FEW-COUNT-4: simt.copy_async %arg0[%0,
// FEW: scf.for %[[TILE:.*]] = %0 to %c800
// FEW:   scf.for
// FEW:     simt.warpgroup_dot
// FEW-NOT: simt.copy_async
// FEW:   simt.wait_dots
// FEW:   simt.barrier
// FEW:   %[[NEXT:.*]] = arith.addi %[[TILE]], %c396
// FEW:   scf.if
// FEW-COUNT-4: simt.copy_async %arg0[%[[NEXT]],
// FEW:   tile.store {{.*}}%arg2[%[[TILE]]]
// FEW:   simt.tiles
func.func @few(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (800)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (51199, 256)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (51199, 64)>, rank = 2 : i64, checks = array<i64: 0>} : tensor<64x64xf16>, !tile.buffer<f16>, index
  return
}

// MOVES: tile.grid = affine_map<() -> (800)>
// MOVES-NOT: simt.tiles
func.func @moves(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (800)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %two = arith.constant 2 : index
  %m = arith.divui %pid, %two : index
  %n = arith.remui %pid, %two : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (25600, 256)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%k, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 128)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (25600, 128)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>, index, index
  return
}

// Two blocks of columns: half of the instances for each, which keep their block's operand.
// BLOCKS: tile.grid = affine_map<() -> (264)>
// BLOCKS-DAG: %[[FIRST:.*]] = arith.remui %[[ID:.*]], %[[EACH:.*]] : index
// BLOCKS-DAG: %[[BLOCK:.*]] = arith.divui %[[ID]], %[[EACH]] : index
// BLOCKS-DAG: %[[EACH]] = arith.constant 132 : index
// BLOCKS: simt.copy_async %arg1[%c0{{.*}}, %[[BLOCK]]
// BLOCKS: simt.copy_async %arg1[%c3{{.*}}, %[[BLOCK]]
// BLOCKS-NOT: simt.copy_async %arg1
// BLOCKS: scf.for %{{.*}} = %[[FIRST]] to %c400{{.*}} step %c132
// BLOCKS-NOT: simt.copy_async %arg1
// BLOCKS: simt.tiles
func.func @blocks(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (800)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %each = arith.constant 400 : index
  %n = arith.divui %pid, %each : index
  %m = arith.remui %pid, %each : index
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (25600, 256)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%k, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (256, 256)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  %r = arith.truncf %c : tensor<64x128xf32> to tensor<64x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (25600, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<64x128xf16>, !tile.buffer<f16>, index, index
  return
}
