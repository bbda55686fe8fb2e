// RUN: charonia-opt %s -print-cpu-code="stage=assembly" -o /dev/null | FileCheck %s
// RUN: charonia-opt %s -print-cpu-code="stage=assembly isa=x86-64-v3" -o /dev/null | FileCheck %s --check-prefix=V3
// RUN: charonia-opt %s -print-cpu-code="stage=assembly isa=x86-64-v4-vnni" -o /dev/null | FileCheck %s --check-prefix=VNNI
// The accumulators of a product stay in registers through the loop over K: for each k
// two vectors of the right side, a broadcast of each row's element, no other memory.
// CHECK-LABEL: matmul:
// CHECK: [[LOOP:.LBB0_[0-9]+]]:
// CHECK-NOT: vmovups %zmm{{.*}}, {{.*}}(%r
// CHECK: vbroadcastss {{.*}}, %zmm
// CHECK-NOT: (%rsp)
// CHECK: vfmadd231ps %zmm{{[0-9]+}}, %zmm{{[0-9]+}}, %zmm
// CHECK-NOT: (%rsp)
// CHECK: j{{[a-z]+}} [[LOOP]]
// CHECK-NOT: callq
// V3-LABEL: matmul:
// V3-NOT: zmm
// V3: vfmadd231ps {{.*}}%ymm
// V3-NOT: callq
func.func @matmul(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>, %c: !tile.buffer<f32>) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %k = arith.constant 768 : index
  %kb = arith.constant 8 : index
  %pid = tile.program_id : index
  %init = arith.constant dense<0.0> : tensor<6x32xf32>
  %sum = scf.for %i = %zero to %k step %kb iter_args(%acc = %init) -> (tensor<6x32xf32>) {
    %x = tile.load %a[%i] {map = affine_map<(d0, d1)[s0] -> (d0, s0 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index) -> tensor<6x8xf32>
    %y = tile.load %b[%pid, %i] {map = affine_map<(d0, d1)[s0, s1] -> (s0, s1 + d0, d1)>, shape = affine_map<()[s0, s1] -> (24, 768, 32)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index) -> tensor<8x32xf32>
    %next = tile.dot %x, %y, %acc : tensor<6x8xf32>, tensor<8x32xf32> -> tensor<6x32xf32>
    scf.yield %next : tensor<6x32xf32>
  }
  tile.store %sum, %c[%pid] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 32 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : tensor<6x32xf32>, !tile.buffer<f32>, index
  return
}

// Of a sum of sums the inner accumulators have the registers; the outer ones are added in
// memory where a line of the cache holds each, and nothing is spilled.
// CHECK-LABEL: blocks:
// CHECK-COUNT-26: vmovaps %zmm{{[0-9]+}}, {{[0-9]*}}(%r{{[a-z0-9]+}})
// CHECK: [[OUTER:.LBB0_[0-9]+]]:
// CHECK-NOT: %zmm{{[0-9]+}}, {{.*}}(%rsp)
// CHECK: [[INNER:.LBB0_[0-9]+]]:
// CHECK-NOT: vmovaps
// CHECK: vfmadd231ps
// CHECK: j{{[a-z]+}} [[INNER]]
// CHECK-NOT: (%rsp), %zmm
// CHECK-COUNT-26: vaddps {{[0-9]*}}(%r{{[a-z0-9]+}}), %zmm
// CHECK-COUNT-26: vmovaps %zmm{{[0-9]+}}, {{[0-9]*}}(%r{{[a-z0-9]+}})
// CHECK-NOT: vmovaps
// CHECK: j{{[a-z]+}} [[OUTER]]
func.func @blocks(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>, %c: !tile.buffer<f32>) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %six = arith.constant 6 : index
  %steps = arith.constant 64 : index
  %pid = tile.program_id : index
  %init = arith.constant dense<0.0> : tensor<13x32xf32>
  %total = scf.for %i = %zero to %six step %one iter_args(%t = %init) -> (tensor<13x32xf32>) {
    %sum = scf.for %j = %zero to %steps step %one iter_args(%acc = %init) -> (tensor<13x32xf32>) {
      %x = tile.load %a[%i, %j] {map = affine_map<(d0, d1)[s0, s1] -> (d0, s0 * 512 + s1 * 8 + d1)>, shape = affine_map<()[s0, s1] -> (13, 3072)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index) -> tensor<13x8xf32>
      %y = tile.load %b[%pid, %i, %j] {map = affine_map<(d0, d1)[s0, s1, s2] -> (s0, s1 * 512 + s2 * 8 + d0, d1)>, shape = affine_map<()[s0, s1, s2] -> (24, 3072, 32)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<f32>, index, index, index) -> tensor<8x32xf32>
      %next = tile.dot %x, %y, %acc : tensor<13x8xf32>, tensor<8x32xf32> -> tensor<13x32xf32>
      scf.yield %next : tensor<13x32xf32>
    }
    %more = arith.addf %t, %sum : tensor<13x32xf32>
    scf.yield %more : tensor<13x32xf32>
  }
  tile.store %total, %c[%pid] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 32 + d1)>, shape = affine_map<()[s0] -> (13, 768)>, rank = 2 : i64, checks = array<i64>} : tensor<13x32xf32>, !tile.buffer<f32>, index
  return
}

// A prefetch is one instruction, into the second-level cache.
// CHECK-LABEL: prefetch:
// CHECK: addq $4096
// CHECK: prefetcht1 (
// CHECK-NEXT: incq
func.func @prefetch(%a: !tile.buffer<f32>) attributes {tile.kernel} {
  %pid = tile.program_id : index
  tile.prefetch %a[%pid] {map = affine_map<()[s0] -> (s0 + 16, 0)>, shape = affine_map<()[s0] -> (4, 64)>, rank = 2 : i64} : !tile.buffer<f32>, index
  return
}

// Integers of 16 bits are multiplied in pairs of terms; their sums stay in registers.
// CHECK-LABEL: pairs:
// CHECK: [[LOOP:.LBB0_[0-9]+]]:
// CHECK-NOT: (%rsp)
// CHECK: vpermt2w
// CHECK: vpbroadcastd {{.*}}(%r{{.*}}), %zmm
// CHECK: vpmaddwd %zmm
// CHECK: vpaddd %zmm
// CHECK-NOT: (%rsp)
// CHECK-NOT: vpmulld
// CHECK: j{{[a-z]+}} [[LOOP]]
// V3-LABEL: pairs:
// V3: vpmaddwd {{.*}}%ymm
func.func @pairs(%a: !tile.buffer<i16>, %b: !tile.buffer<i16>, %c: !tile.buffer<i32>) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %k = arith.constant 768 : index
  %kb = arith.constant 8 : index
  %pid = tile.program_id : index
  %init = arith.constant dense<0> : tensor<6x32xi32>
  %sum = scf.for %i = %zero to %k step %kb iter_args(%acc = %init) -> (tensor<6x32xi32>) {
    %x = tile.load %a[%i] {map = affine_map<(d0, d1)[s0] -> (d0, s0 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i16>, index) -> tensor<6x8xi16>
    %y = tile.load %b[%pid, %i] {map = affine_map<(d0, d1)[s0, s1] -> (s0, s1 + d0, d1)>, shape = affine_map<()[s0, s1] -> (24, 768, 32)>, rank = 3 : i64, checks = array<i64>} : (!tile.buffer<i16>, index, index) -> tensor<8x32xi16>
    %next = tile.dot %x, %y, %acc : tensor<6x8xi16>, tensor<8x32xi16> -> tensor<6x32xi32>
    scf.yield %next : tensor<6x32xi32>
  }
  tile.store %sum, %c[%pid] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 32 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : tensor<6x32xi32>, !tile.buffer<i32>, index
  return
}

// Packed bytes are multiplied by fours where there is VNNI, without a shuffle: the side without a sign is broadcast. Elsewhere two shifts make pairs of them,
// without a shuffle either.
// VNNI-LABEL: bytes:
// VNNI: [[LOOP:.LBB0_[0-9]+]]:
// VNNI-NOT: (%rsp)
// VNNI-NOT: vp{{shuf|erm|unpck|mov}}
// VNNI: vpbroadcastd {{.*}}(%r{{.*}}), %zmm
// VNNI: vpdpbusd {{.*}}%zmm
// VNNI-NOT: (%rsp)
// VNNI: j{{[a-z]+}} [[LOOP]]
// CHECK-LABEL: bytes:
// CHECK-NOT: vpdpbusd
// CHECK: vpmaddwd {{.*}}%zmm
// V3-LABEL: bytes:
// V3: [[LOOP:.LBB0_[0-9]+]]:
// V3: vpsllw $8, %ymm
// V3-NEXT: vpsraw $8, %ymm
// V3-NOT: vp{{blend|ack|mov}}
// V3: vpmaddwd {{.*}}%ymm
// V3: vpsraw $8, %ymm
// V3: vpmaddwd {{.*}}%ymm
// V3: j{{[a-z]+}} [[LOOP]]
func.func @bytes(%a: !tile.buffer<i8>, %b: !tile.buffer<i8>, %c: !tile.buffer<i32>) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %k = arith.constant 768 : index
  %kb = arith.constant 8 : index
  %pid = tile.program_id : index
  %init = arith.constant dense<0> : tensor<6x32xi32>
  %sum = scf.for %i = %zero to %k step %kb iter_args(%acc = %init) -> (tensor<6x32xi32>) {
    %x = tile.load %a[%i] {map = affine_map<(d0, d1)[s0] -> (d0, s0 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i8>, index) -> tensor<6x8xi8>
    %y = tile.load %b[%pid, %i] {map = affine_map<(d0, d1)[s0, s1] -> (s0, s1 floordiv 4 + d0 floordiv 4, d1, d0 mod 4)>, shape = affine_map<()[s0, s1] -> (24, 192, 32, 4)>, rank = 4 : i64, checks = array<i64>} : (!tile.buffer<i8>, index, index) -> tensor<8x32xi8>
    %next = tile.dot %x, %y, %acc : tensor<6x8xi8>, tensor<8x32xi8> -> tensor<6x32xi32>
    scf.yield %next : tensor<6x32xi32>
  }
  tile.store %sum, %c[%pid] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 32 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : tensor<6x32xi32>, !tile.buffer<i32>, index
  return
}

// Where pairs of their products fit 16 bits, they are by fours on every CPU, as wide as they lie.
// VNNI-LABEL: fitting:
// VNNI: vpdpbusd {{.*}}%zmm
// CHECK-LABEL: fitting:
// CHECK-NOT: vpmov{{[sz]}}xbw
// CHECK: vpmaddubsw {{.*}}%zmm
// CHECK-NEXT: vpmaddwd {{.*}}%zmm
// V3-LABEL: fitting:
// V3-NOT: vpmov{{[sz]}}xbw
// V3: vpmaddubsw {{.*}}%ymm
// V3: vpmaddwd {{.*}}%ymm
func.func @fitting(%a: !tile.buffer<i8>, %b: !tile.buffer<i8>, %c: !tile.buffer<i32>) attributes {tile.kernel} {
  %zero = arith.constant 0 : index
  %k = arith.constant 768 : index
  %kb = arith.constant 8 : index
  %pid = tile.program_id : index
  %init = arith.constant dense<0> : tensor<6x32xi32>
  %sum = scf.for %i = %zero to %k step %kb iter_args(%acc = %init) -> (tensor<6x32xi32>) {
    %x = tile.load %a[%i] {map = affine_map<(d0, d1)[s0] -> (d0, s0 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<i8>, index) -> tensor<6x8xi8>
    %y = tile.load %b[%pid, %i] {map = affine_map<(d0, d1)[s0, s1] -> (s0, s1 floordiv 4 + d0 floordiv 4, d1, d0 mod 4)>, shape = affine_map<()[s0, s1] -> (24, 192, 32, 4)>, rank = 4 : i64, checks = array<i64>} : (!tile.buffer<i8>, index, index) -> tensor<8x32xi8>
    %next = tile.dot %x, %y, %acc {pairs_fit} : tensor<6x8xi8>, tensor<8x32xi8> -> tensor<6x32xi32>
    scf.yield %next : tensor<6x32xi32>
  }
  tile.store %sum, %c[%pid] {map = affine_map<(d0, d1)[s0] -> (d0, s0 * 32 + d1)>, shape = affine_map<()[s0] -> (6, 768)>, rank = 2 : i64, checks = array<i64>} : tensor<6x32xi32>, !tile.buffer<i32>, index
  return
}
