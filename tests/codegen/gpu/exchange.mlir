// A cluster's instances exchange tiles: every thread leaves its elements in places of its
// own, reads those of each part, and waits at the end until others have read them.
// RUN: charonia-opt %s | FileCheck %s --check-prefix=TILE
// RUN: charonia-opt %s | charonia-opt | FileCheck %s --check-prefix=TILE
// RUN: charonia-opt %s -gpu-assign-layouts=chip=sm_90a -gpu-shared-memory | FileCheck %s --check-prefix=SIMT
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
