// A matrix product: operands by asynchronous copies in a ring of slots, fragments by
// ldmatrix ahead of mma.sync, one barrier an iteration, 16-byte stores.
// RUN: rm -rf %t && mkdir -p %t && charonia-ptx %s --dump-dir %t --assemble=0 --ptx | FileCheck %s --check-prefix=PTX
// RUN: FileCheck %s --check-prefix=SIMT < %t/gemm.2-simt.mlir

// SIMT: %[[A:.*]] = simt.alloc {managed, offset = 0 : i64, slots = 3 : i64}
// SIMT: %[[B:.*]] = simt.alloc {managed, offset = {{[0-9]+}} : i64, slots = 3 : i64}
// Two iterations ahead; what lies beyond the loop's end is not read.
// SIMT-COUNT-2: simt.commit_async
// SIMT: simt.wait_async 1
// SIMT: simt.barrier
// SIMT-COUNT-2: simt.load_shared
// SIMT: scf.for
// SIMT:   simt.load_shared
// SIMT:   simt.load_shared
// SIMT:   simt.copy_async
// SIMT:   simt.copy_async
// SIMT:   simt.commit_async
// SIMT:   simt.dot {{.*}} {mma}
// SIMT:   simt.wait_async 1
// SIMT-NEXT: simt.barrier
// The first fragments of the next iteration are on their way under the last dot.
// SIMT:   simt.load_shared
// SIMT:   simt.load_shared
// SIMT:   simt.dot {{.*}} {mma}
// SIMT-NOT: simt.barrier
// SIMT:   scf.yield
// The result goes through shared memory, which the rings had: a barrier first.
// SIMT: simt.alloc {offset = 0 : i64}
// SIMT-NEXT: simt.barrier
// SIMT-NEXT: simt.store_shared
// SIMT-NEXT: simt.barrier
// SIMT-NEXT: simt.load_shared
// SIMT-NEXT: tile.store

// PTX: cp.async.cg.shared.global
// PTX: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// PTX: st.shared.v2
// PTX: ld.shared.v4
// PTX: st.global.v4
func.func @gemm(%A: !tile.buffer<f16>, %B: !tile.buffer<f16>, %C: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (16)>, tile.warps = 4 : i64, tile.stages = 3 : i64} {
  %pid = tile.program_id : index
  %four = arith.constant 4 : index
  %m = arith.divui %pid, %four : index
  %n = arith.remui %pid, %four : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 16 : index
  %c = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
    %a = tile.load %A[%m, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 32 + d1)>, shape = affine_map<()[s0, s1] -> (256, 512)>, rank = 2 : i64, checks = array<i64>} : (!tile.buffer<f16>, index, index) -> tensor<64x32xf16>
    %b = tile.load %B[%n, %k] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d1, s1 * 32 + d0)>, shape = affine_map<()[s0, s1] -> (256, 512)>, rank = 2 : i64, checks = array<i64>, independent} : (!tile.buffer<f16>, index, index) -> tensor<32x64xf16>
    %d = tile.dot %a, %b, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %r = arith.truncf %c : tensor<64x64xf32> to tensor<64x64xf16>
  tile.store %r, %C[%m, %n] {map = affine_map<(d0, d1)[s0, s1] -> (s0 * 64 + d0, s1 * 64 + d1)>, shape = affine_map<()[s0, s1] -> (256, 256)>, rank = 2 : i64, checks = array<i64>} : tensor<64x64xf16>, !tile.buffer<f16>, index, index
  return
}
