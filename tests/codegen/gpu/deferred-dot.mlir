// The last dot of a step, whose left operand is made of the first one's results, runs under the next step; its
// operands and the first one's come and go by themselves; what a tile reads once comes by the copy engine, too.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --arch sm_90a --dump-dir %t --assemble=0
// RUN: FileCheck %s --check-prefix=STAYS < %t/stays.2-simt.mlir
// RUN: FileCheck %s --check-prefix=OPEN < %t/open.2-simt.mlir
// RUN: FileCheck %s --check-prefix=SHORT < %t/short.2-simt.mlir
// RUN: FileCheck %s --check-prefix=ALL < %t/all.2-simt.mlir
// RUN: FileCheck %s --check-prefix=SAME < %t/same.2-simt.mlir

// Each multiprocessor has an instance that stays. Keys, values and queries have barriers of their own, and a warp each.
// The first step is in front of the loop, and the last dot behind it.
// STAYS: tile.grid = affine_map<() -> (132)>
// STAYS: simt.alloc {managed, {{.*}}slots = 2 : i64} : <128x128xf16
// STAYS: simt.alloc {managed, {{.*}}slots = 2 : i64} : <128x128xf16
// STAYS: %[[KFULL:.*]] = simt.alloc {managed, {{.*}}slots = 2 : i64} : <1xi64
// STAYS-NEXT: simt.init_barriers %[[KFULL]] {arrivals = 1 : i64}
// STAYS: %[[KEMPTY:.*]] = simt.alloc {managed, {{.*}}slots = 2 : i64} : <1xi64
// STAYS-NEXT: simt.init_barriers %[[KEMPTY]] {arrivals = 8 : i64}
// STAYS: %[[VFULL:.*]] = simt.alloc
// STAYS: %[[VEMPTY:.*]] = simt.alloc
// STAYS: %[[Q:.*]] = simt.alloc {managed, offset = {{[0-9]+}} : i64} : <128x128xf16
// STAYS: %[[QFULL:.*]] = simt.alloc {managed
// STAYS: %[[QEMPTY:.*]] = simt.alloc {managed
// STAYS: simt.copy_warp {
// STAYS:   simt.copy_box %arg1
// STAYS: }, {
// STAYS:   simt.copy_box %arg2
// STAYS: }, {
// STAYS:   simt.copy_box %arg0
// STAYS:   scf.for {{.*}} iter_args(%{{.*}} = %c0{{.*}}, %{{.*}} = %c0{{.*}}, %[[PARITY:.*]] = %c0
// STAYS:     %[[READ:.*]] = simt.slot %[[QEMPTY]]
// STAYS:     simt.wait_barrier %[[READ]], %[[PARITY]]
// STAYS:     simt.copy_box %arg0
// STAYS: } {registers = 240 : i64, warps = 4 : i64}
// STAYS: scf.for
// STAYS-NOT: tile.load
// STAYS:   simt.slot %[[QFULL]]
// STAYS-NEXT: simt.wait_barrier
// STAYS:   simt.warpgroup_dot
// STAYS:   simt.wait_dots 0
// STAYS:   %[[ONE:.*]] = simt.slot %[[KEMPTY]]
// STAYS:   simt.arrive %[[ONE]]
// STAYS:   %[[HALF:.*]] = arith.truncf
// STAYS:   %[[LOOP:.*]]:8 = scf.for {{.*}} %[[BEFORE:.*]] = %[[HALF]], %
// STAYS:     simt.slot %[[KFULL]]
// STAYS:     %[[S:.*]] = simt.warpgroup_dot
// STAYS:     simt.slot %[[VFULL]]
// STAYS:     %[[SUM:.*]] = simt.warpgroup_dot %[[BEFORE]]
// STAYS:     simt.wait_dots 1, %[[S]]
// STAYS:     simt.slot %[[KEMPTY]]
// STAYS:     %[[P:.*]] = math.exp2
// STAYS:     %[[DONE:.*]]:2 = simt.wait_dots 0, %[[SUM]], %[[P]]
// STAYS:     simt.slot %[[VEMPTY]]
// STAYS:     arith.mulf %[[DONE]]#0
// STAYS:     arith.truncf %[[DONE]]#1
// STAYS:   %[[DONEQ:.*]] = simt.slot %[[QEMPTY]]
// STAYS-NEXT: simt.arrive %[[DONEQ]]
// STAYS:   %[[LAST:.*]] = simt.warpgroup_dot %[[LOOP]]#6
// STAYS:   simt.wait_dots 0, %[[LAST]]
// STAYS-NOT: simt.barrier{{$}}
// STAYS:   simt.barrier warpgroup
// STAYS-NOT: simt.barrier{{$}}
// STAYS: simt.tiles
func.func @stays(%Q: !tile.buffer<f16>, %K: !tile.buffer<f16>, %V: !tile.buffer<f16>, %O: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (512)>, tile.warps = 8 : i64, tile.stages = 2 : i64} {
  %id = tile.program_id : index
  %eight = arith.constant 8 : index
  %m = arith.remui %id, %eight : index
  %head = arith.divui %id, %eight : index
  %low = arith.constant dense<0xFF800000> : tensor<128xf32>
  %none = arith.constant dense<0.0> : tensor<128xf32>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 8 : index
  %q = tile.load %Q[%m, %head] {map = affine_map<(d0, d1)[s0, s1] -> (s1, d0 + s0 * 128, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x128xf16>
  %r:3 = scf.for %j = %c0 to %steps step %c1 iter_args(%max = %low, %sum = %none, %acc = %zero) -> (tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>) {
    %start = arith.constant dense<0.0> : tensor<128x128xf32>
    %k = tile.load %K[%head, %j] {map = affine_map<(d0, d1)[s0, s1] -> (s0, d1 + s1 * 128, d0)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x128xf16>
    %s = tile.dot %q, %k, %start : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf32>
    %here = tile.reduce %s {axis = 1 : i64} : (tensor<128x128xf32>) -> tensor<128xf32> {
    ^bb0(%a: f32, %b: f32):
      %x = arith.maximumf %a, %b : f32
      tile.yield %x : f32
    }
    %top = arith.maximumf %max, %here : tensor<128xf32>
    %tops = tile.broadcast %top {axes = array<i64: 0>} : tensor<128xf32> -> tensor<128x128xf32>
    %d = arith.subf %s, %tops : tensor<128x128xf32>
    %p = math.exp2 %d : tensor<128x128xf32>
    %e = arith.subf %max, %top : tensor<128xf32>
    %f = math.exp2 %e : tensor<128xf32>
    %g = arith.mulf %sum, %f : tensor<128xf32>
    %all = tile.reduce %p {axis = 1 : i64} : (tensor<128x128xf32>) -> tensor<128xf32> {
    ^bb0(%a: f32, %b: f32):
      %x = arith.addf %a, %b : f32
      tile.yield %x : f32
    }
    %h = arith.addf %g, %all : tensor<128xf32>
    %fs = tile.broadcast %f {axes = array<i64: 0>} : tensor<128xf32> -> tensor<128x128xf32>
    %scaled = arith.mulf %acc, %fs : tensor<128x128xf32>
    %v = tile.load %V[%head, %j] {map = affine_map<(d0, d1)[s0, s1] -> (s0, d0 + s1 * 128, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x128xf16>
    %half = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xf16>
    %next = tile.dot %half, %v, %scaled : tensor<128x128xf16>, tensor<128x128xf16> -> tensor<128x128xf32>
    scf.yield %top, %h, %next : tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>
  }
  %sums = tile.broadcast %r#1 {axes = array<i64: 0>} : tensor<128xf32> -> tensor<128x128xf32>
  %y = arith.divf %r#2, %sums : tensor<128x128xf32>
  %z = arith.truncf %y : tensor<128x128xf32> to tensor<128x128xf16>
  tile.store %z, %O[%m, %head] {map = affine_map<(d0, d1)[s0, s1] -> (s1, d0 + s0 * 128, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : tensor<128x128xf16>, !tile.buffer<f16>, index, index
  return
}

// There may be no step.
// OPEN: %[[ANY:.*]] = arith.cmpi slt, %c0{{.*}}, %arg4
// OPEN: %[[R:.*]]:3 = scf.if %[[ANY]]
// OPEN:   simt.warpgroup_dot
// OPEN:   scf.for
// OPEN:     simt.wait_dots 1
// OPEN:   simt.warpgroup_dot
// OPEN:   scf.yield
// OPEN: } else {
// OPEN:   scf.yield %cst
// OPEN: }
// OPEN: arith.divf %[[R]]#2
func.func @open(%Q: !tile.buffer<f16>, %K: !tile.buffer<f16>, %V: !tile.buffer<f16>, %O: !tile.buffer<f16>, %steps: index)
    attributes {tile.kernel, tile.grid = affine_map<() -> (256)>, tile.warps = 4 : i64, tile.stages = 2 : i64, tile.residents = 2 : i64} {
  %id = tile.program_id : index
  %eight = arith.constant 8 : index
  %m = arith.remui %id, %eight : index
  %head = arith.divui %id, %eight : index
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %q = tile.load %Q[%m, %head] {map = affine_map<(d0, d1)[s0, s1] -> (s1, d0 + s0 * 64, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
  %r:3 = scf.for %j = %c0 to %steps step %c1 iter_args(%max = %low, %sum = %none, %acc = %zero) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x128xf32>) {
    %start = arith.constant dense<0.0> : tensor<64x64xf32>
    %k = tile.load %K[%head, %j] {map = affine_map<(d0, d1)[s0, s1] -> (s0, d1 + s1 * 64, d0)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %s = tile.dot %q, %k, %start : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
    %here = tile.reduce %s {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %x = arith.maximumf %a, %b : f32
      tile.yield %x : f32
    }
    %top = arith.maximumf %max, %here : tensor<64xf32>
    %tops = tile.broadcast %top {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x64xf32>
    %d = arith.subf %s, %tops : tensor<64x64xf32>
    %p = math.exp2 %d : tensor<64x64xf32>
    %e = arith.subf %max, %top : tensor<64xf32>
    %f = math.exp2 %e : tensor<64xf32>
    %g = arith.mulf %sum, %f : tensor<64xf32>
    %all = tile.reduce %p {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %x = arith.addf %a, %b : f32
      tile.yield %x : f32
    }
    %h = arith.addf %g, %all : tensor<64xf32>
    %fs = tile.broadcast %f {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x128xf32>
    %scaled = arith.mulf %acc, %fs : tensor<64x128xf32>
    %v = tile.load %V[%head, %j] {map = affine_map<(d0, d1)[s0, s1] -> (s0, d0 + s1 * 64, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %half = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %next = tile.dot %half, %v, %scaled : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %top, %h, %next : tensor<64xf32>, tensor<64xf32>, tensor<64x128xf32>
  }
  %sums = tile.broadcast %r#1 {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x128xf32>
  %y = arith.divf %r#2, %sums : tensor<64x128xf32>
  %z = arith.truncf %y : tensor<64x128xf32> to tensor<64x128xf16>
  tile.store %z, %O[%m, %head] {map = affine_map<(d0, d1)[s0, s1] -> (s1, d0 + s0 * 64, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : tensor<64x128xf16>, !tile.buffer<f16>, index, index
  return
}

// Three instances of a multiprocessor leave no registers for it; queries, keys and values still come by the engine, by
// one warp, and nobody meets in the loop.
// SHORT: simt.copy_warp {
// SHORT-NOT: {{^  [}], [{]}}
// SHORT: {{^  [}]}}
// SHORT-NOT: simt.barrier
// SHORT: scf.for
// SHORT-NOT: simt.barrier
// SHORT: simt.warpgroup_dot
// SHORT-NEXT: simt.wait_dots 0
// SHORT: simt.arrive
// SHORT-NOT: simt.barrier
// SHORT: simt.warpgroup_dot
// SHORT-NEXT: simt.wait_dots 0
// SHORT: simt.arrive
// SHORT-NOT: simt.barrier
// SHORT: scf.yield
func.func @short(%Q: !tile.buffer<f16>, %K: !tile.buffer<f16>, %V: !tile.buffer<f16>, %O: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1024)>, tile.warps = 4 : i64, tile.stages = 2 : i64, tile.residents = 3 : i64} {
  %id = tile.program_id : index
  %eight = arith.constant 8 : index
  %m = arith.remui %id, %eight : index
  %head = arith.divui %id, %eight : index
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %q = tile.load %Q[%m, %head] {map = affine_map<(d0, d1)[s0, s1] -> (s1, d0 + s0 * 64, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
  %r:3 = scf.for %j = %c0 to %steps step %c1 iter_args(%max = %low, %sum = %none, %acc = %zero) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x128xf32>) {
    %start = arith.constant dense<0.0> : tensor<64x64xf32>
    %k = tile.load %K[%head, %j] {map = affine_map<(d0, d1)[s0, s1] -> (s0, d1 + s1 * 64, d0)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<128x64xf16>
    %s = tile.dot %q, %k, %start : tensor<64x128xf16>, tensor<128x64xf16> -> tensor<64x64xf32>
    %here = tile.reduce %s {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %x = arith.maximumf %a, %b : f32
      tile.yield %x : f32
    }
    %top = arith.maximumf %max, %here : tensor<64xf32>
    %tops = tile.broadcast %top {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x64xf32>
    %d = arith.subf %s, %tops : tensor<64x64xf32>
    %p = math.exp2 %d : tensor<64x64xf32>
    %e = arith.subf %max, %top : tensor<64xf32>
    %f = math.exp2 %e : tensor<64xf32>
    %g = arith.mulf %sum, %f : tensor<64xf32>
    %all = tile.reduce %p {axis = 1 : i64} : (tensor<64x64xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %x = arith.addf %a, %b : f32
      tile.yield %x : f32
    }
    %h = arith.addf %g, %all : tensor<64xf32>
    %fs = tile.broadcast %f {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x128xf32>
    %scaled = arith.mulf %acc, %fs : tensor<64x128xf32>
    %v = tile.load %V[%head, %j] {map = affine_map<(d0, d1)[s0, s1] -> (s0, d0 + s1 * 64, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x128xf16>
    %half = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %next = tile.dot %half, %v, %scaled : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
    scf.yield %top, %h, %next : tensor<64xf32>, tensor<64xf32>, tensor<64x128xf32>
  }
  %sums = tile.broadcast %r#1 {axes = array<i64: 0>} : tensor<64xf32> -> tensor<64x128xf32>
  %y = arith.divf %r#2, %sums : tensor<64x128xf32>
  %z = arith.truncf %y : tensor<64x128xf32> to tensor<64x128xf16>
  tile.store %z, %O[%m, %head] {map = affine_map<(d0, d1)[s0, s1] -> (s1, d0 + s0 * 64, d1)>, shape = affine_map<()[s0, s1] -> (64, 1024, 128)>, rank = 3 : i64, checks = array<i64>} : tensor<64x128xf16>, !tile.buffer<f16>, index, index
  return
}

// The last dot of each step reads what comes once: nothing tells when it has read a step's.
// ALL: simt.copy_warp
// ALL: scf.for
// ALL: simt.warpgroup_dot
// ALL-NEXT: simt.wait_dots 0
// ALL: simt.arrive
// ALL: simt.warpgroup_dot
// ALL-NEXT: simt.wait_dots 0
func.func @all(%Q: !tile.buffer<f16>, %K: !tile.buffer<f16>, %V: !tile.buffer<f16>, %O: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (64)>, tile.warps = 4 : i64, tile.stages = 2 : i64} {
  %id = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %part = arith.constant dense<0.5> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %q = tile.load %Q[%id] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 64, d1)>, shape = affine_map<()[s0] -> (4096, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
  %v = tile.load %V[%id] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 64, d1)>, shape = affine_map<()[s0] -> (4096, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
  %r = scf.for %j = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %K[%j] {map = affine_map<(d0, d1)[s0] -> (d1 + s0 * 64, d0)>, shape = affine_map<()[s0] -> (1024, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %s = tile.dot %q, %k, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = math.exp2 %s : tensor<64x64xf32>
    %scaled = arith.mulf %acc, %part : tensor<64x64xf32>
    %half = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %next = tile.dot %half, %v, %scaled : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %r, %O[%id] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 64, d1)>, shape = affine_map<()[s0] -> (4096, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf32>, !tile.buffer<f32>, index
  return
}

// Both dots read one stream, whose slot is left when the step is over.
// SAME: simt.copy_warp
// SAME: simt.warpgroup_dot
// SAME-NEXT: simt.wait_dots 0
// SAME-NOT: simt.arrive
// SAME: simt.warpgroup_dot
// SAME-NEXT: simt.wait_dots 0
// SAME: simt.arrive
func.func @same(%Q: !tile.buffer<f16>, %K: !tile.buffer<f16>, %O: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (64)>, tile.warps = 4 : i64, tile.stages = 2 : i64} {
  %id = tile.program_id : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %part = arith.constant dense<0.5> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %q = tile.load %Q[%id] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 64, d1)>, shape = affine_map<()[s0] -> (4096, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
  %r = scf.for %j = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %k = tile.load %K[%j] {map = affine_map<(d0, d1)[s0] -> (d1 + s0 * 64, d0)>, shape = affine_map<()[s0] -> (1024, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index) -> tensor<64x64xf16>
    %s = tile.dot %q, %k, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = math.exp2 %s : tensor<64x64xf32>
    %scaled = arith.mulf %acc, %part : tensor<64x64xf32>
    %half = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %next = tile.dot %half, %k, %scaled : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %r, %O[%id] {map = affine_map<(d0, d1)[s0] -> (d0 + s0 * 64, d1)>, shape = affine_map<()[s0] -> (4096, 64)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf32>, !tile.buffer<f32>, index
  return
}
