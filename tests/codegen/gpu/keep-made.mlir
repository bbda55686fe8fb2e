// The sum of two rows that both loops compute takes the place of the first row in shared memory:
// the thread that has read a tile's elements stores their sums there and reads these later, so
// that nobody waits, and the second row is read once. Where both rows are wanted again, they stay
// as they are.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx > /dev/null
// RUN: FileCheck %s --check-prefix=SUM < %t/sum.2-simt.mlir
// RUN: FileCheck %s --check-prefix=ROUNDED < %t/rounded.2-simt.mlir
// RUN: FileCheck %s --check-prefix=OTHER < %t/other.2-simt.mlir

// SUM:     %[[RING:.*]] = simt.alloc {managed, {{.*}}slots = 3 : i64}
// SUM:     simt.copy_async %arg0
// SUM:     %[[SLOT:.*]] = simt.slot %[[RING]][
// SUM:     %[[X:.*]] = simt.load_shared %[[SLOT]]
// SUM:     %[[S:.*]] = arith.addf %[[X]], %{{.*}}
// SUM:     simt.store_shared %[[S]], %[[SLOT]]
// SUM-NOT: simt.barrier
// SUM:     arith.maximumf %{{.*}}, %[[S]]
// SUM:     tile.reduce
// SUM:     scf.for
// SUM-NOT:   tile.load %arg1
// SUM:       simt.load_shared
// SUM-NOT:   arith.addf
// SUM:       arith.subf
// SUM:       tile.store
func.func @sum(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>, %arg2: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (4)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %least = arith.constant dense<0xFC00> : tensor<8192xf16>
  %most = scf.for %i = %c0 to %c3 step %c1 iter_args(%top = %least) -> (tensor<8192xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %s = arith.addf %x, %z : tensor<8192xf16>
    %next = arith.maximumf %top, %s : tensor<8192xf16>
    scf.yield %next : tensor<8192xf16>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<8192xf16>) -> tensor<f16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.maximumf %a, %b : f16
    tile.yield %m : f16
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f16> -> tensor<8192xf16>
  scf.for %i = %c0 to %c3 step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %s = arith.addf %x, %z : tensor<8192xf16>
    %y = arith.subf %s, %wide : tensor<8192xf16>
    tile.store %y, %arg2[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : tensor<8192xf16>, !tile.buffer<f16>, index, index
  }
  return
}

// What may be rounded to the row's type is, and all that is known of the row is known of that.
// ROUNDED:     %[[SLOT:.*]] = simt.slot
// ROUNDED:     %[[TOTAL:.*]] = arith.addf {{.*}} {tile.may_be_rounded = f16}
// ROUNDED:     %[[STORED:.*]] = arith.truncf %[[TOTAL]]
// ROUNDED-DAG: simt.store_shared %[[STORED]]
// ROUNDED-DAG: %[[AGAIN:.*]] = arith.extf %[[STORED]]
// ROUNDED-NOT: arith.maximumf {{.*}}%[[TOTAL]]
// ROUNDED:     arith.maximumf %{{.*}}, %[[AGAIN]]
// ROUNDED:     tile.reduce
// ROUNDED:     scf.for
// ROUNDED-NOT:   tile.load %arg1
// ROUNDED:       %[[KEPT:.*]] = simt.load_shared
// ROUNDED:       arith.extf %[[KEPT]]
// ROUNDED-NOT:   arith.addf
// ROUNDED:       tile.store
func.func @rounded(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>, %arg2: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (4)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %least = arith.constant dense<0xFF800000> : tensor<8192xf32>
  %most = scf.for %i = %c0 to %c3 step %c1 iter_args(%top = %least) -> (tensor<8192xf32>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %xw = arith.extf %x : tensor<8192xf16> to tensor<8192xf32>
    %zw = arith.extf %z : tensor<8192xf16> to tensor<8192xf32>
    %s = arith.addf %xw, %zw {tile.may_be_rounded = f16} : tensor<8192xf32>
    %next = arith.maximumf %top, %s : tensor<8192xf32>
    scf.yield %next : tensor<8192xf32>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<8192xf32>) -> tensor<f32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %b : f32
    tile.yield %m : f32
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f32> -> tensor<8192xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %xw = arith.extf %x : tensor<8192xf16> to tensor<8192xf32>
    %zw = arith.extf %z : tensor<8192xf16> to tensor<8192xf32>
    %s = arith.addf %xw, %zw {tile.may_be_rounded = f16} : tensor<8192xf32>
    %yw = arith.subf %s, %wide : tensor<8192xf32>
    %y = arith.truncf %yw : tensor<8192xf32> to tensor<8192xf16>
    tile.store %y, %arg2[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : tensor<8192xf16>, !tile.buffer<f16>, index, index
  }
  return
}

// OTHER-NOT: simt.store_shared %{{.*}}, %{{.*}} : tensor<8192xf16
// OTHER:     tile.reduce
// OTHER:     scf.for
// OTHER:       simt.load_shared
// OTHER:       simt.load_shared
// OTHER:       arith.addf
// OTHER:       arith.mulf
// OTHER:       arith.addf
// OTHER:       tile.store
func.func @other(%arg0: !tile.buffer<f16>, %arg1: !tile.buffer<f16>, %arg2: !tile.buffer<f16>) attributes {tile.grid = affine_map<() -> (4)>, tile.kernel, tile.warps = 16 : i64} {
  %row = tile.program_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %least = arith.constant dense<0xFC00> : tensor<8192xf16>
  %most = scf.for %i = %c0 to %c3 step %c1 iter_args(%top = %least) -> (tensor<8192xf16>) {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %s = arith.addf %x, %z : tensor<8192xf16>
    %next = arith.maximumf %top, %s : tensor<8192xf16>
    scf.yield %next : tensor<8192xf16>
  }
  %max = tile.reduce %most {axis = 0 : i64} : (tensor<8192xf16>) -> tensor<f16> {
  ^bb0(%a: f16, %b: f16):
    %m = arith.maximumf %a, %b : f16
    tile.yield %m : f16
  }
  %wide = tile.broadcast %max {axes = array<i64>} : tensor<f16> -> tensor<8192xf16>
  scf.for %i = %c0 to %c3 step %c1 {
    %x = tile.load %arg0[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %z = tile.load %arg1[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : (!tile.buffer<f16>, index, index) -> tensor<8192xf16>
    %s = arith.addf %x, %z : tensor<8192xf16>
    %y = arith.subf %s, %wide : tensor<8192xf16>
    %w = arith.mulf %y, %x : tensor<8192xf16>
    %v = arith.addf %w, %z : tensor<8192xf16>
    tile.store %v, %arg2[%row, %i] {checks = array<i64>, map = affine_map<(d0)[s0, s1] -> (s0, d0 + s1 * 8192)>, rank = 2 : i64, shape = affine_map<()[s0, s1] -> (4, 24576)>} : tensor<8192xf16>, !tile.buffer<f16>, index, index
  }
  return
}
