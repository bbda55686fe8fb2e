// Parts of a sum: stored in 16 bytes a thread, counted once by one thread after all have
// stored, added up in order by the last to arrive; the others end.
// RUN: charonia-ptx %s --assemble=0 --ptx | FileCheck %s

// CHECK-LABEL: .entry sum(
// CHECK-COUNT-2: st.global.v4.b32
// CHECK:       fence.acq_rel.gpu
// CHECK-NEXT:  barrier.sync 0
// CHECK:       atom.acq_rel.gpu.global.inc.u32 arrived, [%{{.*}}], 2;
// CHECK:       barrier.red.or.pred last, 0, last
// CHECK-NEXT:  @!last exit
// CHECK-NEXT:  fence.acq_rel.gpu
// CHECK-COUNT-6: ld.global.v4.b32
// CHECK-NOT:   ld.global
func.func @sum(%A: !tile.buffer<f32>, %C: !tile.buffer<f32>, %S: !tile.buffer<f32>, %N: !tile.buffer<i32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (12)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %c3 = arith.constant 3 : index
  %part = arith.remui %p, %c3 : index
  %tile = arith.divui %p, %c3 : index
  %x = tile.load %A[%p] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (12, 1024)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<1024xf32>
  %s = tile.split_sum %x, %S, %N[%tile, %part] {parts = 3 : i64} : tensor<1024xf32>, !tile.buffer<f32>, !tile.buffer<i32>
  tile.store %s, %C[%tile] {map = affine_map<(d0)[s0] -> (s0, d0)>, shape = affine_map<()[s0] -> (4, 1024)>, rank = 2 : i64, checks = array<i64>} : tensor<1024xf32>, !tile.buffer<f32>, index
  return
}
