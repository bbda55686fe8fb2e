// RUN: charonia-opt %s --pack-columns=panel=16 --split-input-file | FileCheck %s
// RUN: charonia-opt %s --pack-columns=panel=16 --form-kernels=dense-rows --split-input-file | FileCheck %s --check-prefix=KERNELS
// Rows of 4096 bytes: the lines of 16 columns all meet in 16 sets of a cache. The panels are a
// kernel's result though the views behind them undo its transpose.
// CHECK-LABEL: @powers
// CHECK: %[[R:.+]] = graph.reshape %{{.+}} -> tensor<1024x64x16xf32>
// CHECK: %[[P:.+]] = graph.transpose %[[R]] {graph.stored, permutation = array<i64: 1, 0, 2>}
// CHECK: graph.transpose %[[P]]
// CHECK: graph.matmul
// KERNELS-LABEL: @powers
// KERNELS: graph.kernel "transpose"{{.*}} -> tensor<64x1024x16xf32>
// KERNELS: graph.kernel "matmul"({{.*}}tensor<64x1024x16xf32>)
func.func @powers(%x: tensor<64x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<64x1024xf32> {
  %0 = graph.matmul %x, %y : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}

// -----

// Rows of 4000 bytes spread over all sets.
// CHECK-LABEL: @spread
// CHECK-NOT: graph.stored
func.func @spread(%x: tensor<64x1024xf32>, %y: tensor<1024x1000xf32>) -> tensor<64x1000xf32> {
  %0 = graph.matmul %x, %y : (tensor<64x1024xf32>, tensor<1024x1000xf32>) -> tensor<64x1000xf32>
  return %0 : tensor<64x1000xf32>
}

// -----

// Few rows read the columns once or twice; few terms stay in the cache; what is repeated for each
// of a batch is smaller where it lies.
// CHECK-LABEL: @few
// CHECK-NOT: graph.stored
func.func @few(%x: tensor<16x1024xf32>, %y: tensor<1024x1024xf32>, %a: tensor<2x64x64xf32>, %b: tensor<2x64x1024xf32>,
               %c: tensor<2x64x1024xf32>) -> (tensor<16x1024xf32>, tensor<2x64x1024xf32>, tensor<2x64x1024xf32>) {
  %0 = graph.matmul %x, %y : (tensor<16x1024xf32>, tensor<1024x1024xf32>) -> tensor<16x1024xf32>
  %1 = graph.matmul %a, %b : (tensor<2x64x64xf32>, tensor<2x64x1024xf32>) -> tensor<2x64x1024xf32>
  %2 = graph.reshape %y : (tensor<1024x1024xf32>) -> tensor<1x1024x1024xf32>
  %3 = graph.broadcast %2 : (tensor<1x1024x1024xf32>) -> tensor<2x1024x1024xf32>
  %4 = graph.matmul %c, %3 : (tensor<2x64x1024xf32>, tensor<2x1024x1024xf32>) -> tensor<2x64x1024xf32>
  return %0, %1, %4 : tensor<16x1024xf32>, tensor<2x64x1024xf32>, tensor<2x64x1024xf32>
}

// -----

// Weights are packed by themselves.
// CHECK-LABEL: @weight
// CHECK-NOT: graph.stored
func.func @weight(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %y = graph.weight "w" : tensor<1024x1024xf32>
  %0 = graph.matmul %x, %y : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
