// Elementwise kernels: 16-byte accesses, predicated, two roundings an instruction.
// RUN: charonia-ptx %s --ptx --assemble=0 | FileCheck %s

// CHECK-LABEL: .visible .entry add(
// CHECK: .param .u64 .ptr .global .align 16 add_param_0
// CHECK: .param .u64 add_param_3
// CHECK: .reqntid 128
// CHECK: setp.lt.u32 [[P:%p[0-9]+]]
// CHECK-COUNT-2: @[[P]] ld.global.v4.b32
// CHECK-COUNT-4: cvt.rn.f16x2.f32
// CHECK: @[[P]] st.global.v4.b32
// CHECK-NOT: st.global
func.func @add(%a: !tile.buffer<f16>, %b: !tile.buffer<f16>, %o: !tile.buffer<f16>, %n: index {tile.divisor = 8 : i64})
    attributes {tile.kernel, tile.grid = affine_map<()[s0] -> (s0 ceildiv 1024)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %a[%p, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 1024 + d0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<1024xf16>
  %y = tile.load %b[%p, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 1024 + d0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<1024xf16>
  %xf = arith.extf %x : tensor<1024xf16> to tensor<1024xf32>
  %yf = arith.extf %y : tensor<1024xf16> to tensor<1024xf32>
  %s = arith.addf %xf, %yf : tensor<1024xf32>
  %t = arith.truncf %s : tensor<1024xf32> to tensor<1024xf16>
  tile.store %t, %o[%p, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 1024 + d0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<1024xf16>, !tile.buffer<f16>, index, index
  return
}

// Nothing is known to divide n: one element at a time, neighbours in neighbouring lanes.
// CHECK-LABEL: .visible .entry copy_odd(
// CHECK-COUNT-8: ld.global.b16
// CHECK-COUNT-8: st.global.b16
func.func @copy_odd(%a: !tile.buffer<f16>, %o: !tile.buffer<f16>, %n: index)
    attributes {tile.kernel, tile.grid = affine_map<()[s0] -> (s0 ceildiv 1024)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %a[%p, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 1024 + d0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index, index) -> tensor<1024xf16>
  tile.store %x, %o[%p, %n] {map = affine_map<(d0)[s0, s1] -> (s0 * 1024 + d0)>, shape = affine_map<()[s0, s1] -> (s1)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<1024xf16>, !tile.buffer<f16>, index, index
  return
}

// A load that checks nothing and is never written is a plain one through the read-only
// cache.
// CHECK-LABEL: .visible .entry weights(
// CHECK: ld.global.nc.v4
// CHECK-NOT: setp
// CHECK: st.global.v4
func.func @weights(%a: !tile.buffer<f32>, %o: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %a[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (2048)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>, index) -> tensor<512xf32>
  tile.store %x, %o[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (2048)>, rank = 1 : i64, checks = array<i64>} : tensor<512xf32>, !tile.buffer<f32>, index
  return
}

// 12 GiB into a buffer: more than the offset of an instruction holds.
// CHECK-LABEL: .visible .entry far(
// CHECK: 12884901888
// CHECK: ld.global.nc.v4.b32 {{.*}}, [%rd{{[0-9]+}}];
// CHECK: st.global.v4.b32
func.func @far(%a: !tile.buffer<f32>, %o: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %a[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0 + 3221225472)>, shape = affine_map<()[s0] -> (3221227520)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>, index) -> tensor<512xf32>
  tile.store %x, %o[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (2048)>, rank = 1 : i64, checks = array<i64>} : tensor<512xf32>, !tile.buffer<f32>, index
  return
}

// 256 MiB into a buffer: more than the 29 bits of a constant in a GEP.
// CHECK-LABEL: .visible .entry near(
// CHECK-NOT: -268435456
// CHECK: {{, 268435456;|ld\.global\.nc\.v4\.b32 .*, \[%rd[0-9]+\+268435456\]}}
// CHECK: st.global.v4.b32
func.func @near(%a: !tile.buffer<f32>, %o: !tile.buffer<f32>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (4)>, tile.warps = 4 : i64} {
  %p = tile.program_id : index
  %x = tile.load %a[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0 + 67108864)>, shape = affine_map<()[s0] -> (3221227520)>, rank = 1 : i64, checks = array<i64>, independent} : (!tile.buffer<f32>, index) -> tensor<512xf32>
  tile.store %x, %o[%p] {map = affine_map<(d0)[s0] -> (s0 * 512 + d0)>, shape = affine_map<()[s0] -> (2048)>, rank = 1 : i64, checks = array<i64>} : tensor<512xf32>, !tile.buffer<f32>, index
  return
}
