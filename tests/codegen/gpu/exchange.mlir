// A cluster's instances exchange tiles: every thread leaves its elements in places of its
// own, reads those of each part, and waits at the end until others have read them.
// RUN: charonia-opt %s | FileCheck %s --check-prefix=TILE
// RUN: charonia-opt %s | charonia-opt | FileCheck %s --check-prefix=TILE
// RUN: charonia-opt %s -gpu-assign-layouts=chip=sm_90a -gpu-pipeline -gpu-shared-memory | FileCheck %s --check-prefix=SIMT
// RUN: charonia-ptx %s --arch sm_90a --assemble=0 --ptx | FileCheck %s

// TILE-LABEL: @exchange
// TILE: tile.exchange %{{.*}}, %{{.*}} {parts = 2 : i64} : tensor<256xf32>, tensor<256xf32>

// Two registers of two operands.
// SIMT-LABEL: @exchange
// SIMT-SAME:  gpu.shared_bytes = 2048
// SIMT:       %[[M:.*]] = simt.alloc {offset = 0 : i64, slots = 4 : i64} : <128xf32
// SIMT-NOT:   simt.barrier
// SIMT:       simt.exchange %{{.*}}, %{{.*}} through %[[M]] {parts = 2 : i64}
// SIMT-NOT:   simt.barrier
// SIMT:       return

// CHECK-LABEL: .entry exchange(
// CHECK:       st.shared.b32 [%[[OWN:r[0-9]+]]],
// CHECK-NEXT:  st.shared.b32 [%[[OWN]]+512],
// CHECK-NEXT:  st.shared.b32 [%[[OWN]]+1024],
// CHECK-NEXT:  st.shared.b32 [%[[OWN]]+1536],
// CHECK-NEXT:  barrier.cluster.arrive.aligned
// CHECK-NEXT:  barrier.cluster.wait.aligned
// CHECK:       mapa.shared::cluster.u32 %[[ZERO:r[0-9]+]], %[[OWN]], 0;
// CHECK-NEXT:  ld.shared::cluster.b32 %{{.*}}, [%[[ZERO]]];
// CHECK-COUNT-3: ld.shared::cluster.b32
// CHECK:       mapa.shared::cluster.u32 %{{.*}}, %[[OWN]], 1;
// CHECK-COUNT-4: ld.shared::cluster.b32
// CHECK:       barrier.cluster.arrive.aligned
// CHECK:       st.global
// CHECK:       barrier.cluster.wait.aligned
// CHECK-NEXT:  ret
func.func @exchange(%X: !tile.buffer<f32>, %Y: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (16)>, tile.warps = 4 : i64} {
  %id = tile.program_id : index
  %x = tile.load %X[%id] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (16, 256)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<256xf32>
  %y = arith.mulf %x, %x : tensor<256xf32>
  %r:4 = tile.exchange %x, %y {parts = 2 : i64} : tensor<256xf32>, tensor<256xf32>
  %s = arith.addf %r#0, %r#2 : tensor<256xf32>
  %t = arith.addf %r#1, %r#3 : tensor<256xf32>
  %u = arith.mulf %s, %t : tensor<256xf32>
  tile.store %u, %Y[%id] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (16, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<256xf32>, !tile.buffer<f32>, index
  return
}

// Behind a product whose operands come by the copy engine: the warps that copy have ended,
// and what is exchanged lies beside the rings.
// CHECK-LABEL: .entry product(
// CHECK:       exit;
// CHECK:       wgmma.mma_async
// CHECK:       barrier.cluster.arrive.aligned
// CHECK-NEXT:  barrier.cluster.wait.aligned
// CHECK-COUNT-12: ld.shared::cluster.b32
// CHECK-NOT:   ld.shared::cluster
// CHECK:       barrier.cluster.arrive.aligned
// CHECK:       barrier.cluster.wait.aligned
// CHECK-NEXT:  ret
func.func @product(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f32>) attributes {tile.kernel, tile.grid = affine_map<() -> (12)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %id = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %n = arith.remui %id, %c6 : index
  %m = arith.divui %id, %c6 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %p = scf.for %k = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> tensor<64x128xf32> {
    %x = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (128, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %w = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (1024, 768)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %x, %w, %acc : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  %sq = arith.mulf %p, %p : tensor<64x128xf32>
  %s:2 = tile.reduce %p, %sq {axis = 1 : i64} : (tensor<64x128xf32>, tensor<64x128xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%a: f32, %a2: f32, %b: f32, %b2: f32):
    %c = arith.addf %a, %b : f32
    %c2 = arith.addf %a2, %b2 : f32
    tile.yield %c, %c2 : f32, f32
  }
  %r:12 = tile.exchange %s#0, %s#1 {parts = 6 : i64} : tensor<64xf32>, tensor<64xf32>
  %t0 = arith.addf %r#0, %r#2 : tensor<64xf32>
  %t1 = arith.addf %t0, %r#4 : tensor<64xf32>
  %t2 = arith.addf %t1, %r#6 : tensor<64xf32>
  %t3 = arith.addf %t2, %r#8 : tensor<64xf32>
  %t4 = arith.addf %t3, %r#10 : tensor<64xf32>
  %bt = tile.broadcast %t4 {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x128xf32>
  %y = arith.subf %p, %bt : tensor<64x128xf32>
  tile.store %y, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (128, 768)>, rank = 2 : i64, checks = array<i64>} : tensor<64x128xf32>, !tile.buffer<f32>, index, index
  return
}
