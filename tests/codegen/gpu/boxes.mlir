// Operands of dots of warpgroups come by the copy engine: one thread of an additional warp asks
// for the boxes of each, the others wait for mbarriers and never for each other.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=RING < %t/ring.2-simt.mlir
// RUN: FileCheck %s --check-prefix=WHOLE < %t/whole.2-simt.mlir
// RUN: FileCheck %s --check-prefix=COLUMNS < %t/columns.2-simt.mlir
// RUN: FileCheck %s --check-prefix=GUARDED < %t/guarded.2-simt.mlir
// RUN: FileCheck %s --check-prefix=NEGATIVE < %t/negative.2-simt.mlir
// RUN: FileCheck %s --check-prefix=LAST < %t/last.2-simt.mlir
// RUN: FileCheck %s --check-prefix=PADDED < %t/padded.2-simt.mlir
// RUN: FileCheck %s --check-prefix=SUMMED < %t/summed.2-simt.mlir
// RUN: FileCheck %s --check-prefix=DISTANCES < %t/distances.2-simt.mlir
// RUN: FileCheck %s --check-prefix=MOVED < %t/moved.2-simt.mlir

// The rows of A and the columns of B past the end are outside of the tensor as well. Weights of
// the first slots are asked for before the kernels in front have ended; a slot is told to be
// empty when the dot behind the one that reads it is under way.
// RING-LABEL: func.func @ring
// RING: %[[FULL:.*]] = simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 4 : i64} : <1xi64
// RING-NEXT: simt.init_barriers %[[FULL]] {arrivals = 2 : i64}
// RING: %[[EMPTY:.*]] = simt.alloc {managed
// RING-NEXT: simt.init_barriers %[[EMPTY]] {arrivals = 8 : i64}
// RING-NEXT: simt.barrier all
// RING: simt.copy_warp {
// RING:   simt.wait_dependencies
// RING:   scf.for
// RING:     simt.expect_bytes
// RING-NOT:   simt.copy_box %arg1
// RING:     simt.copy_box %arg0[{{.*}}extents = affine_map<()[s0] -> (512, s0)>, strides = affine_map<()[s0] -> (1024)>, box = [64, 128]
// RING:   scf.for
// RING:     simt.coordinates
// RING:     simt.wait_barrier
// RING:     simt.expect_bytes
// RING:     simt.copy_box
// RING: }, {
// RING-NOT:   simt.wait_dependencies
// RING:   scf.for
// RING:     simt.expect_bytes
// RING-NOT:   simt.copy_box %arg0
// RING:     simt.copy_box %arg1[{{.*}}advance = 64 : i64, bytes = 8192 : i64, count = 2 : i64{{.*}}box = [64, 64], steps = [1, 1]
// RING:   scf.for
// RING:     simt.coordinates
// RING:     simt.wait_barrier
// RING:     simt.expect_bytes
// RING:     simt.copy_box
// RING: } {warps = 2 : i64}
// RING: scf.for
// RING-NEXT: simt.slot
// RING-NEXT: simt.wait_barrier
// RING-NOT: simt.barrier
// RING: simt.warpgroup_dot
// RING: simt.wait_dots 1
// RING: simt.arrive {{.*}} when
// RING: simt.wait_dots 0,

// PTX-LABEL: .entry ring(
// PTX-DAG: .param .align 64 .b8 ring_param_4[128]
// PTX-DAG: .param .align 64 .b8 ring_param_5[128]
// PTX: .reqntid 320
// PTX: mbarrier.init.shared.b64
// PTX: fence.mbarrier_init
// PTX: bar.sync 	0;
// PTX: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// PTX-NOT: cp.async.cg
// PTX: bar.sync {{.*}}, 
func.func @ring(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>, %rows: index)
    attributes {tile.kernel, tile.grid = affine_map<()[s0] -> ((s0 + 127) floordiv 128 * 3)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %three = arith.constant 3 : index
  %m = arith.divui %pid, %three : index
  %n = arith.remui %pid, %three : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k, %rows] {map = affine_map<(d0, d1)[s0, s1, s2] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1, s2] -> (s2, 512)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 328)>, rank = 2 : i64, checks = array<i64: 1>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m, %n, %rows] {map = affine_map<(d0, d1)[s0, s1, s2] -> (s0 * 128 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1, s2] -> (s2, 328)>, rank = 2 : i64, checks = array<i64: 0, 1>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index, index
  return
}

// As many slots as iterations: each is filled once, and nobody tells that it is empty.
// WHOLE-LABEL: func.func @whole
// WHOLE: simt.alloc {managed, offset = 0 : i64, slots = 3 : i64} : <64x64xf16
// WHOLE-COUNT-1: simt.init_barriers
// WHOLE-NOT: simt.init_barriers
// WHOLE-NOT: simt.arrive
// WHOLE: return
func.func @whole(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 4 : i64, tile.stages = 6 : i64} {
  %pid = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 3 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%pid, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 192)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d1, s0 * 64 + d0)>, shape = affine_map<()[s0] -> (64, 192)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%pid] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>, index
  return
}

// Pixels of a 3x3 window in steps of two (im2col): images of 15x17, padded by one, have 8x9 of them.
// COLUMNS-LABEL: func.func @columns
// COLUMNS: simt.copy_box %arg0[{{.*}}] moved[{{.*}}extents = affine_map<() -> (64, 17, 15, 2)>{{.*}}box = [64, 16]
// COLUMNS: simt.copy_box %arg0[{{.*}}] moved[{{.*}}extents = affine_map<() -> (64, 17, 15, 2)>, strides = affine_map<() -> (128, 2176, 32640)>, box = [64, 64], steps = [1, 2, 2, 1], corners = [-1, -1, -1, -1]
func.func @columns(%X: !tile.buffer<f16>, %W: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (3)>, tile.warps = 4 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 9 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %X[%pid, %k] {map = affine_map<(d0, d1)[s0, s1] -> ((d0 + s0 * 64) floordiv 72, (((d0 + s0 * 64) floordiv 9) mod 8) * 2 + s1 floordiv 3 - 1, ((d0 + s0 * 64) mod 9) * 2 + s1 mod 3 - 1, d1)>, shape = affine_map<()[s0, s1] -> (2, 15, 17, 64)>, rank = 4 : i64, checks = array<i64: 0, 1, 2>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %W[%k] {map = affine_map<(d0, d1)[s0] -> (d1, s0 * 64 + d0)>, shape = affine_map<()[s0] -> (64, 576)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%pid] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (144, 64)>, rank = 2 : i64, checks = array<i64: 0>} : tensor<64x64xf16>, !tile.buffer<f16>, index
  return
}

// A guard that leaves out terms inside of the tensor is no box.
// GUARDED-LABEL: func.func @guarded
// GUARDED-NOT: simt.copy_box
// GUARDED: simt.copy_async
func.func @guarded(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 4 : i64, tile.stages = 6 : i64} {
  %pid = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 3 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%pid, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 192, 190)>, rank = 2 : i64, checks = array<i64: 2>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d1, s0 * 64 + d0)>, shape = affine_map<()[s0] -> (64, 192)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%pid] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>, index
  return
}

// Steps that are left out go behind the last row, which rows before the first would not.
// NEGATIVE-LABEL: func.func @negative
// NEGATIVE-NOT: simt.copy_box
// NEGATIVE: simt.copy_async
func.func @negative(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 4 : i64, tile.stages = 6 : i64} {
  %pid = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 6 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%pid, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0 - 3, s1 * 64 + d1, s1)>, shape = affine_map<()[s0, s1] -> (253, 384, 4)>, rank = 2 : i64, checks = array<i64: 0, 2>} : (!tile.buffer<f16>, index, index) -> tensor<64x64xf16>
    %b = tile.load %B[%k] {map = affine_map<(d0, d1)[s0] -> (d1, s0 * 64 + d0)>, shape = affine_map<()[s0] -> (64, 384)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%pid] {map = affine_map<(d0, d1)[s0] -> (s0 * 64 + d0, d1)>, shape = affine_map<()[s0] -> (256, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>, index
  return
}

// Of a last tile nothing outside is asked for: of its 72 rows, and of one panel of 64 columns of
// two. The others hold anything, since nobody stores what they make.
// LAST-LABEL: func.func @last
// LAST: %[[ROW:.*]] = simt.coordinates[{{.*}}] {map = affine_map<()[s0, s1] -> (s0 * 128)>}
// LAST: %[[ROWS:.*]] = arith.constant 72 : index
// LAST: %[[SHORT:.*]] = arith.cmpi sgt, %[[ROW]], %[[ROWS]]
// LAST: %[[BYTES:.*]] = arith.select %[[SHORT]]
// LAST: simt.expect_bytes {{.*}}, %[[BYTES]]
// LAST: scf.if %[[SHORT]]
// LAST: simt.copy_box %arg0[{{.*}}box = [64, 72]
// LAST: else
// LAST: simt.copy_box %arg0[{{.*}}box = [64, 128]
// LAST: simt.copy_box %arg1[{{.*}}count = 1 : i64{{.*}}box = [64, 64]
// LAST: simt.copy_box %arg1[{{.*}}count = 2 : i64{{.*}}box = [64, 64]
func.func @last(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (6)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %three = arith.constant 3 : index
  %m = arith.divui %pid, %three : index
  %n = arith.remui %pid, %three : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (200, 512)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 320)>, rank = 2 : i64, checks = array<i64: 1>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (200, 320)>, rank = 2 : i64, checks = array<i64: 0, 1>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index
  return
}

// Rows that are zero and stored are asked for.
// PADDED-LABEL: func.func @padded
// PADDED-NOT: box = [64, 72]
// PADDED: simt.copy_box %arg0[{{.*}}box = [64, 128]
// PADDED-NOT: box = [64, 72]
func.func @padded(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (6)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %three = arith.constant 3 : index
  %m = arith.divui %pid, %three : index
  %n = arith.remui %pid, %three : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (200, 512)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 320)>, rank = 2 : i64, checks = array<i64: 1>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (256, 320)>, rank = 2 : i64, checks = array<i64: 0, 1>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index
  return
}

// Nor are rows left out that others are added to.
// SUMMED-LABEL: func.func @summed
// SUMMED-NOT: box = [64, 72]
// SUMMED: simt.copy_box %arg0[{{.*}}box = [64, 128]
// SUMMED-NOT: box = [64, 72]
func.func @summed(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>, %S: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (6)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %three = arith.constant 3 : index
  %m = arith.divui %pid, %three : index
  %n = arith.remui %pid, %three : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (200, 512)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 320)>, rank = 2 : i64, checks = array<i64: 1>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %sum = tile.reduce %c {axis = 0 : i64} : (tensor<128x128xf32>) -> tensor<128xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q fastmath<contract> : f32
    tile.yield %s : f32
  }
  tile.store %sum, %S[%m, %n] {map = affine_map<(d0)[s0, s1] -> (s0, s1 * 128 + d0)>, shape = affine_map<()[s0, s1] -> (2, 320)>, rank = 2 : i64, checks = array<i64: 1>} : tensor<128xf32>, !tile.buffer<f32>, index, index
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (200, 320)>, rank = 2 : i64, checks = array<i64: 0, 1>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index
  return
}

// What is spread over a row again, such as the mean of a run of its columns, is the row's own.
// DISTANCES-LABEL: func.func @distances
// DISTANCES: simt.copy_box %arg0[{{.*}}box = [64, 72]
func.func @distances(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %two = arith.constant 2 : index
  %m = arith.divui %pid, %two : index
  %n = arith.remui %pid, %two : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (200, 512)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 256)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %runs = tile.split_axis %c {axis = 1 : i64, inner = 32 : i64} : tensor<128x128xf32> -> tensor<128x4x32xf32>
  %sums = tile.reduce %runs {axis = 2 : i64} : (tensor<128x4x32xf32>) -> tensor<128x4xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q fastmath<contract> : f32
    tile.yield %s : f32
  }
  %spread = tile.broadcast %sums {axes = array<i64: 0, 1>} : tensor<128x4xf32> -> tensor<128x4x32xf32>
  %again = tile.join_axes %spread {axis = 1 : i64} : tensor<128x4x32xf32> -> tensor<128x128xf32>
  %distance = arith.subf %c, %again : tensor<128x128xf32>
  %r = arith.truncf %distance : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (200, 256)>, rank = 2 : i64, checks = array<i64: 0>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index
  return
}

// Rows that are stored elsewhere, as out of windows, by their own number.
// MOVED-LABEL: func.func @moved
// MOVED: simt.copy_box %arg0[{{.*}}box = [64, 72]
func.func @moved(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (6)>, tile.warps = 8 : i64, tile.stages = 4 : i64} {
  %pid = tile.program_id : index
  %three = arith.constant 3 : index
  %m = arith.divui %pid, %three : index
  %n = arith.remui %pid, %three : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 128 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (200, 512)>, rank = 2 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s1 * 64 + d0, s0 * 128 + d1)>, shape = affine_map<()[s0, s1] -> (512, 320)>, rank = 2 : i64, checks = array<i64: 1>, independent} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %d = tile.dot %a, %b, %acc : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (((s0 * 128 + d0) mod 8) * 25 + (s0 * 128 + d0) floordiv 8, s1 * 128 + d1, s0 * 128 + d0)>, shape = affine_map<()[s0, s1] -> (200, 320, 200)>, rank = 2 : i64, checks = array<i64: 1, 2>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index
  return
}
