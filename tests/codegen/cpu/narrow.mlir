// RUN: charonia-opt %s -print-cpu-code="stage=ir isa=x86-64-v3" -o /dev/null | FileCheck %s
// RUN: charonia-opt %s -print-cpu-code="stage=ir" -o /dev/null | FileCheck %s --check-prefix=V4

// A kernel of bytes alone takes four times as many at once. Where the machine loads none under a mask, whole
// registers are loaded as such, none for those behind the end, and what ends in the middle of one element by element.
// CHECK-LABEL: define {{.*}}@bytes(
// CHECK: br i1 %{{.*}}, label %all, label %part
// CHECK: all:
// CHECK: load <32 x i8>, ptr %{{.*}}, align 1
// CHECK: part:
// CHECK: br i1 %{{.*}}, label %some, label %loaded
// CHECK: some:
// CHECK-COUNT-32: load i8,
// CHECK: loaded:
// CHECK: phi <32 x i8> {{.*}}[ zeroinitializer, %part ]
// CHECK: and <32 x i1>
// V4-LABEL: define {{.*}}@bytes(
// V4: call <64 x i8> @llvm.masked.load.v64i8.p0(
func.func @bytes(%a: !tile.buffer<i8>, %b: !tile.buffer<i8>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %x = tile.load %a[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 64)>, shape = affine_map<()[s0] -> (1013)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<i8>, index) -> tensor<64xi8>
  %zero = arith.constant dense<0> : tensor<64xi8>
  %one = arith.constant dense<1> : tensor<64xi8>
  %p = arith.cmpi ne, %x, %zero : tensor<64xi8>
  %q = arith.cmpi ne, %x, %one : tensor<64xi8>
  %r = arith.andi %p, %q : tensor<64xi1>
  %y = arith.extui %r : tensor<64xi1> to tensor<64xi8>
  tile.store %y, %b[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 64)>, shape = affine_map<()[s0] -> (1013)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<64xi8>, !tile.buffer<i8>, index
  return
}

// Halves are computed as f32, so that a register of these is what a kernel takes; they are loaded in the same way.
// CHECK-LABEL: define {{.*}}@halves(
// CHECK: load <8 x i16>, ptr %{{.*}}, align 2
// CHECK: load i16,
// V4-LABEL: define {{.*}}@halves(
// V4: call <16 x i16> @llvm.masked.load.v16i16.p0(
func.func @halves(%a: !tile.buffer<f16>, %b: !tile.buffer<f16>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %x = tile.load %a[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 64)>, shape = affine_map<()[s0] -> (1013)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f16>, index) -> tensor<64xf16>
  %w = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  %n = arith.negf %w : tensor<64xf32>
  %y = arith.truncf %n : tensor<64xf32> to tensor<64xf16>
  tile.store %y, %b[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 64)>, shape = affine_map<()[s0] -> (1013)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<64xf16>, !tile.buffer<f16>, index
  return
}

// Bytes from which elements of 32 bits are made are as many as these.
// CHECK-LABEL: define {{.*}}@widened(
// CHECK: load <8 x i8>, ptr %{{.*}}, align 1
// CHECK-NOT: <32 x i8>
func.func @widened(%a: !tile.buffer<i8>, %b: !tile.buffer<i32>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  %x = tile.load %a[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 64)>, shape = affine_map<()[s0] -> (1013)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<i8>, index) -> tensor<64xi8>
  %y = arith.extui %x : tensor<64xi8> to tensor<64xi32>
  tile.store %y, %b[%pid] {map = affine_map<(d0)[s0] -> (d0 + s0 * 64)>, shape = affine_map<()[s0] -> (1013)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<64xi32>, !tile.buffer<i32>, index
  return
}
