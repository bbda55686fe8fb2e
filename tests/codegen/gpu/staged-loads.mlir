// Weights of 4 bits: bytes and scales are copied as they lie, each once, ahead of the
// dots; what they become is computed from there under the dots of the step before. A
// branch around the ends of K belongs to what is computed.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --boxes=0 --dump-dir %t --assemble=0
// RUN: FileCheck %s < %t/packed.2-simt.mlir
// RUN: FileCheck %s --check-prefix=THREAD < %t/packed.3-thread.mlir

// CHECK-LABEL: func.func @packed
// The right operand has two slots; the bytes that it is made of and their scales as many
// as the left one.
// CHECK-DAG: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 4 : i64} : <64x64xf16
// CHECK-DAG: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 4 : i64} : <32x64xi8
// CHECK-DAG: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 4 : i64} : <2x64xf16
// CHECK-DAG: simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 2 : i64} : <64x64xf16
// CHECK:     scf.for
// CHECK:       simt.wait_async 1
// CHECK:       simt.barrier
// CHECK:       simt.warpgroup_dot
// CHECK-COUNT-3: simt.copy_async
// CHECK-NOT:   simt.copy_async
// CHECK-NOT:   tile.load
// CHECK:       simt.commit_async
// CHECK:       simt.load_shared {{.*}} : <32x64xi8{{.*}} -> tensor<64x64xi8
// CHECK:       simt.load_shared {{.*}} : <2x64xf16{{.*}} -> tensor<64x64xf16
// CHECK:       scf.if
// CHECK:       simt.store_shared
// CHECK-NEXT:  simt.wait_dots 0
// CHECK:       scf.yield

// Integers of 4 bits are the end of a float's; nothing is converted one by one.
// THREAD-NOT: arith.sitofp
// THREAD:     arith.ori
func.func @packed(%A: !tile.buffer<f16>, %B: !tile.buffer<i8>, %S: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (8)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %n = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x64xf16>
  %low = arith.constant dense<15> : tensor<64x64xi32>
  %point = arith.constant dense<8.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %places = tile.index[] {map = affine_map<(d0, d1) -> ((d0 mod 2) * 4)>} : () -> tensor<64x64xindex>
  %shifts = arith.index_cast %places : tensor<64x64xindex> to tensor<64x64xi32>
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%k] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 64 + d1)>, shape = affine_map<()[s0] -> (64, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %bytes = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d1, d0 floordiv 32 + s1 * 2, (d0 floordiv 2) mod 16)>, shape = affine_map<()[s0, s1] -> (512, 32, 16)>, rank = 3 : i64, checks = array<i64>, independent} : (!tile.buffer<i8>, index, index) -> tensor<64x64xi8>
    %wide = arith.extui %bytes : tensor<64x64xi8> to tensor<64x64xi32>
    %moved = arith.shrui %wide, %shifts : tensor<64x64xi32>
    %numbers = arith.andi %moved, %low : tensor<64x64xi32>
    %floats = arith.sitofp %numbers : tensor<64x64xi32> to tensor<64x64xf32>
    %centred = arith.subf %floats, %point : tensor<64x64xf32>
    %s = tile.load %S[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d1, d0 floordiv 32 + s1 * 2)>, shape = affine_map<()[s0, s1] -> (512, 32)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %scales = arith.extf %s : tensor<64x64xf16> to tensor<64x64xf32>
    %scaled = arith.mulf %centred, %scales : tensor<64x64xf32>
    %half = arith.truncf %scaled : tensor<64x64xf32> to tensor<64x64xf16>
    %inside = tile.in_bounds[%k] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0)>, shape = affine_map<()[s0] -> (1000)>} : (index) -> tensor<64x64xi1>
    %b = arith.select %inside, %half, %none : tensor<64x64xi1>, tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%n] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 64 + d1)>, shape = affine_map<()[s0] -> (64, 512)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>, index
  return
}
