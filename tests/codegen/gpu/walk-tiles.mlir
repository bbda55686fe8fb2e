// More large tiles than multiprocessors: an instance of each stays, the warps that copy go on with the
// next tile's slots while one ends, and what ends a tile goes through memory of its own, half of it at a
// time, so that no slot is lost. There a warpgroup waits for nobody but itself.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0
// RUN: FileCheck %s --check-prefix=WALK < %t/walk.2-simt.mlir
// RUN: FileCheck %s --check-prefix=FEW < %t/few.2-simt.mlir
// RUN: FileCheck %s --check-prefix=SMALL < %t/small.2-simt.mlir
// RUN: FileCheck %s --check-prefix=CROSSING < %t/crossing.2-simt.mlir

// Four slots, two of them for the second tile before the first is done: those that nobody has filled
// yet are not waited for. A tile's last slot is told to be empty behind the loop over terms.
// WALK: tile.grid = affine_map<() -> (132)>
// WALK-DAG: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 4 : i64} : <128x64xf16
// WALK-DAG: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 4 : i64} : <64x256xf16
// WALK: simt.copy_warp {
// WALK:   %[[FIRST:.*]] = tile.program_id
// WALK:   scf.for
// WALK:     simt.copy_box
// WALK:   %[[REST:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %c2{{.*}}, %{{.*}} = %c1
// WALK:     simt.wait_barrier
// WALK:     simt.copy_box
// WALK:   %[[NEXT:.*]] = arith.addi %[[FIRST]], %c132
// WALK:   scf.for %{{.*}} = %[[NEXT]] to %c400{{.*}} step %c132{{.*}} iter_args(%{{.*}} = %[[REST]]#0, %{{.*}} = %[[REST]]#1)
// WALK:     scf.for
// WALK:       simt.wait_barrier
// WALK:       simt.copy_box
// WALK: } {registers
// WALK: %[[ID:.*]] = tile.program_id
// WALK: scf.for %[[TILE:.*]] = %[[ID]] to %c400{{.*}} step %c132{{.*}} iter_args(%[[SLOT:.*]] = %c0{{.*}}, %[[PARITY:.*]] = %c0
// WALK:   %[[SUM:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %cst, %{{.*}} = %[[SLOT]], %{{.*}} = %[[PARITY]],
// WALK:     simt.warpgroup_dot
// WALK:   simt.wait_dots 0
// WALK:   %[[LAST:.*]] = simt.slot %{{.*}}[%[[SUM]]#3]
// WALK:   simt.arrive %[[LAST]]
// WALK:   simt.slice
// WALK:   simt.barrier warpgroup
// WALK:   simt.store_shared {{.*}}tensor<128x128xf16
// WALK:   simt.barrier warpgroup
// WALK:   simt.load_shared
// WALK:   simt.slice
// WALK:   simt.barrier warpgroup
// WALK:   simt.store_shared
// WALK:   simt.barrier warpgroup
// WALK:   simt.load_shared
// WALK:   simt.join {{.*}} {axis = 1
// WALK-NOT: simt.barrier
// WALK:   tile.store
// WALK:   scf.yield %[[SUM]]#1, %[[SUM]]#2
// WALK: simt.tiles
func.func @walk(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (400)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 2 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (51200, 128)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (128, 256)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x256xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x256xf16> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  %r = arith.truncf %c : tensor<128x256xf32> to tensor<128x256xf16>
  tile.store %r, %C[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 128 + d0, d1)>, shape = affine_map<()[s0] -> (51200, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<128x256xf16>, !tile.buffer<f16>, index
  return
}

// One round of tiles.
// FEW: tile.grid = affine_map<() -> (132)>
// FEW-NOT: simt.tiles
func.func @few(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (132)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (16896, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (1024, 256)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x256xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x256xf16> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  %r = arith.truncf %c : tensor<128x256xf32> to tensor<128x256xf16>
  tile.store %r, %C[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 128 + d0, d1)>, shape = affine_map<()[s0] -> (16896, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<128x256xf16>, !tile.buffer<f16>, index
  return
}

// Two instances have room on a multiprocessor, and hide each other's ends.
// SMALL: tile.grid = affine_map<() -> (800)>
// SMALL-NOT: simt.tiles
func.func @small(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (800)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (51200, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (1024, 128)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  %r = arith.truncf %c : tensor<64x128xf32> to tensor<64x128xf16>
  tile.store %r, %C[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (51200, 128)>, rank = 2 : i64, checks = array<i64>} : tensor<64x128xf16>, !tile.buffer<f16>, index
  return
}

// Sums of columns are of both groups: what goes through the memory that each group's half of the results
// went through waits for all, and so does what each group stores there of the next tile.
// CROSSING: tile.grid = affine_map<() -> (132)>
// CROSSING: scf.for {{.*}} iter_args
// CROSSING:   simt.wait_dots 0
// CROSSING:   simt.warp_reduce
// CROSSING:   simt.barrier{{$}}
// CROSSING-NEXT: simt.store_shared {{.*}}xf32
// CROSSING-NEXT: simt.barrier{{$}}
// CROSSING-NEXT: simt.load_shared
// CROSSING:   simt.barrier{{$}}
// CROSSING-NEXT: simt.store_shared {{.*}}tensor<128x128xf16
// CROSSING-NEXT: simt.barrier warpgroup
// CROSSING-NEXT: simt.load_shared
func.func @crossing(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>, %D: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (400)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %m = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x256xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (51200, 512)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (512, 256)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x256xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x256xf16> -> tensor<128x256xf32>
    scf.yield %d : tensor<128x256xf32>
  }
  %s = tile.reduce %c {axis = 0 : i64} : (tensor<128x256xf32>) -> tensor<256xf32> {
  ^bb0(%x: f32, %y: f32):
    %t = arith.addf %x, %y : f32
    tile.yield %t : f32
  }
  tile.store %s, %D[%m] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (400, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<256xf32>, !tile.buffer<f32>, index
  %r = arith.truncf %c : tensor<128x256xf32> to tensor<128x256xf16>
  tile.store %r, %C[%m] {map = affine_map<(d0, d1)[s0] -> (s0 * 128 + d0, d1)>, shape = affine_map<()[s0] -> (51200, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<128x256xf16>, !tile.buffer<f16>, index
  return
}
