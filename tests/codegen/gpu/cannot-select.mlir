// What LLVM cannot select is an error of the kernel, not the end of the process.
// RUN: not charonia-ptx %s 2>&1 | FileCheck %s
// CHECK: error: LLVM cannot generate code for sm_80 from this kernel: no libcall available for flog
func.func @no_library(%a: !tile.buffer<f16>)
    attributes {tile.kernel, tile.grid = affine_map<() -> (1)>} {
  %x = tile.load %a[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (128)>, rank = 1 : i64, checks = array<i64>} : (!tile.buffer<f16>) -> tensor<128xf16>
  %y = math.log %x : tensor<128xf16>
  tile.store %y, %a[] {map = affine_map<(d0) -> (d0)>, shape = affine_map<() -> (128)>, rank = 1 : i64, checks = array<i64>} : tensor<128xf16>, !tile.buffer<f16>
  return
}
