// RUN: charonia-opt %s -print-cpu-code="stage=assembly isa=x86-64-v3" -o /dev/null | FileCheck %s
// RUN: charonia-opt %s -print-cpu-code="stage=assembly" -o /dev/null | FileCheck %s --check-prefix=V4
// Where a row's last tile ends within a vector, the others' vectors are stored as they are: a
// masked store takes some machines without AVX-512 as long as a dozen of them.
// CHECK-LABEL: ends:
// CHECK: vmovups %ymm[[V:[0-9]+]], (%[[TO:r[0-9]+]])
// CHECK: vmaskmovps %ymm[[V]], %ymm{{[0-9]+}}, (%[[TO]])
// V4-LABEL: ends:
// V4: vmovups %zmm{{[0-9]+}}, ({{.*}}) {%k
func.func @ends(%a: !tile.buffer<f32>, %b: !tile.buffer<f32>) attributes {tile.kernel} {
  %i = tile.program_id : index
  %x = tile.load %a[%i] {map = affine_map<(d0)[s0] -> (d0 + s0 * 16)>, shape = affine_map<()[s0] -> (1003)>, rank = 1 : i64, checks = array<i64: 0>} : (!tile.buffer<f32>, index) -> tensor<16xf32>
  tile.store %x, %b[%i] {map = affine_map<(d0)[s0] -> (d0 + s0 * 16)>, shape = affine_map<()[s0] -> (1003)>, rank = 1 : i64, checks = array<i64: 0>} : tensor<16xf32>, !tile.buffer<f32>, index
  return
}
