// Images of three channels get a fourth: the runs of the rows are three elements that begin anywhere, so
// that a thread reads one by one what it stores at once, and nothing goes through shared memory.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0
// RUN: FileCheck %s < %t/pad.2-simt.mlir

// CHECK-NOT: simt.alloc
// CHECK:     tile.load {{.*}} -> tensor<1024xf16, #simt.layout<register = {{\[\[1\], \[2\], \[4\]\]}}
// CHECK-NOT: simt.alloc
// CHECK:     tile.store
func.func @pad(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (7360)>, tile.kernel, tile.stages = 3 : i64, tile.warps = 4 : i64} {
  %0 = tile.program_id : index
  %1 = tile.load %arg0[%0] {checks = array<i64: 1, 2, 3>, map = affine_map<(d0)[s0] -> (s0 floordiv 230, s0 mod 230 - 3, d0 floordiv 4 - 3, d0 mod 4)>, rank = 4 : i64, shape = affine_map<()[s0] -> (32, 224, 224, 3)>} : (!tile.buffer<f16>, index) -> tensor<1024xf16>
  tile.store %1, %arg1[%0] {checks = array<i64: 1>, map = affine_map<(d0)[s0] -> (s0, d0)>, rank = 2 : i64, shape = affine_map<()[s0] -> (7360, 920)>} : tensor<1024xf16>, !tile.buffer<f16>, index
  return
}
