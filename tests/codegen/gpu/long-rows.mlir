// Rows of 20001 numbers, read by two loops: tiles begin in front of the row at a multiple
// of 16 bytes, copies bring them to shared memory once, and their ends are taken element
// by element.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=SIMT < %t/rows.2-simt.mlir

// 20001 = 2 * 8192 + 3617; with up to seven elements in front there are still three tiles.
// SIMT:     %[[RING:.*]] = simt.alloc {managed, {{.*}}slots = 3 : i64}
// SIMT:     scf.for %[[I:.*]] =
// SIMT:       %[[SLOT:.*]] = simt.slot %[[RING]][%[[I]]]
// SIMT:       simt.copy_async %arg0[%{{.*}}, %[[I]]] to %[[SLOT]]
// SIMT-SAME:    (s0, d0 + s1 * 8192 + ((s0 * 20001) floordiv 8) * 8 - s0 * 20001)
// SIMT-SAME:    vector = 8
// SIMT:       simt.commit_async
// SIMT:     simt.wait_async 2
// SIMT-NOT: tile.load %arg0
// SIMT:     simt.load_shared
// SIMT:     simt.wait_async 1
// SIMT:     simt.load_shared
// SIMT:     simt.wait_async 0
// SIMT:     simt.load_shared
// SIMT:     scf.for
// SIMT-NOT:   tile.load %arg0
// SIMT:       simt.load_shared
// SIMT:       tile.store

// PTX-DAG: cp.async.cg.shared.global
// PTX-DAG: ld.global.b16
// PTX-DAG: st.global.v4.b32
// PTX-DAG: st.global.b16
func.func @rows(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (4)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %least = arith.constant dense<0xFC00> : tensor<8192xf16>
  %most = scf.for %i = %c0 to %c3 step %c1 iter_args(%top = %least) -> (tensor<8192xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %in = tile.in_bounds[%i] {map = affine_map<(d0)[s0] -> (d0 + s0 * 8192)>, shape = affine_map<()[s0] -> (20001)>} : (index) -> tensor<8192xi1>
    %y = arith.select %in, %x, %least : tensor<8192xi1>, tensor<8192xf16>
    %next = arith.maximumf %top, %y : tensor<8192xf16>
    scf.yield %next : tensor<8192xf16>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<8192xf16>) -> tensor<f16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.maximumf %a, %b : f16
    tile.yield %m : f16
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f16> -> tensor<8192xf16>
  scf.for %i = %c0 to %c3 step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %y = arith.subf %x, %wide : tensor<8192xf16>
    tile.store %y, %arg1[%row, %i] {checks = array<i64: 1>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 20001)>} : tensor<8192xf16>, !tile.buffer<f16>, index, index
  }
  return
}
