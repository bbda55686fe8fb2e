// RUN: charonia-opt %s -print-cpu-code="stage=assembly" -o /dev/null | FileCheck %s
// RUN: charonia-opt %s -print-cpu-code="stage=assembly isa=x86-64-v3" -o /dev/null | FileCheck %s --check-prefix=V3
// Columns that are widened serve more rows than registers hold sums of: they are put into the
// scratch once, and each block of rows has a loop over the terms with its sums in registers.
// CHECK-LABEL: widened:
// CHECK-NOT: %zmm{{.*}}(%rsp)
// CHECK: vcvtdq2ps
// CHECK: vmovaps %zmm{{[0-9]+}}, {{[0-9]*}}(%r8)
// CHECK-NOT: vfmadd
// CHECK: [[FIRST:.LBB0_[0-9]+]]:
// CHECK-NOT: (%rsp)
// CHECK-NOT: vmov{{.*}} %zmm{{[0-9]+}}, {{.*}}(
// CHECK-NOT: vcvtdq2ps
// CHECK: vfmadd231ps %zmm
// CHECK: j{{[a-z]+}} [[FIRST]]
// CHECK: [[SECOND:.LBB0_[0-9]+]]:
// CHECK-NOT: vcvtdq2ps
// CHECK: vfmadd231ps %zmm
// CHECK: j{{[a-z]+}} [[SECOND]]
// CHECK-NOT: {{(%zmm.*[(]%rsp|[(]%rsp[)], %zmm)}}
// CHECK: retq
// V3-LABEL: widened:
// V3: vcvtdq2ps {{.*}}%ymm
// V3: [[FIRST:.LBB0_[0-9]+]]:
// V3-NOT: vcvtdq2ps
// V3: vfmadd231ps {{.*}}%ymm
// V3: j{{[a-z]+}} [[FIRST]]
func.func @widened(%a: !tile.buffer<f32>, %b: !tile.buffer<i8>, %c: !tile.buffer<f32>) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %k = arith.constant 512 : index
  %kb = arith.constant 64 : index
  %init = arith.constant dense<0.0> : tensor<28x32xf32>
  %sum = scf.for %i = %zero to %k step %kb iter_args(%acc = %init) -> (tensor<28x32xf32>) {
    %x = tile.load %a[%i] {map = affine_map<(d0, d1)[s0] -> (d0, s0 + d1)>, shape = affine_map<()[s0] -> (28, 512)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<28x64xf32>
    %q = tile.load %b[%i] {map = affine_map<(d0, d1)[s0] -> (s0 + d0, d1)>, shape = affine_map<()[s0] -> (512, 32)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i8>, index) -> tensor<64x32xi8>
    %y = arith.sitofp %q : tensor<64x32xi8> to tensor<64x32xf32>
    %next = tile.dot %x, %y, %acc : tensor<28x64xf32>, tensor<64x32xf32> -> tensor<28x32xf32>
    scf.yield %next : tensor<28x32xf32>
  }
  tile.store %sum, %c[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (28, 32)>, rank = 2 : i64, checks = array<i64>} : tensor<28x32xf32>, !tile.buffer<f32>
  return
}

// So are columns that are read where they are multiplied: blocks of the 48 rows have loops over the 64 terms, where all
// would be 6144 instructions.
// V3-LABEL: read:
// V3: vmovaps %ymm{{[0-9]+}}, {{[0-9]*}}(%r8)
// V3-NOT: vfmadd
// V3: [[FIRST:.LBB[0-9]+_[0-9]+]]:
// V3: vfmadd231ps {{.*}}%ymm
// V3: j{{[a-z]+}} [[FIRST]]
// V3: [[SECOND:.LBB[0-9]+_[0-9]+]]:
// V3: vfmadd231ps {{.*}}%ymm
// V3: j{{[a-z]+}} [[SECOND]]
// CHECK-LABEL: read:
func.func @read(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>, %c: !tile.buffer<f32>) attributes {tile.kernel} {
  %init = arith.constant dense<0.0> : tensor<48x16xf32>
  %x = tile.load %a[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (48, 64)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<48x64xf32>
  %y = tile.load %b[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (64, 16)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>) -> tensor<64x16xf32>
  %sum = tile.dot %x, %y, %init : tensor<48x64xf32>, tensor<64x16xf32> -> tensor<48x16xf32>
  tile.store %sum, %c[] {map = affine_map<(d0, d1) -> (d0, d1)>, shape = affine_map<() -> (48, 16)>, rank = 2 : i64, checks = array<i64>} : tensor<48x16xf32>, !tile.buffer<f32>
  return
}
