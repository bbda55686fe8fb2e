// RUN: charonia-opt %s --form-kernels=instances=132 --verify-kernels --split-input-file | FileCheck %s
// RUN: charonia-opt %s --form-kernels=dense-rows --verify-kernels --split-input-file | FileCheck %s --check-prefix=CPU
// What three channels share is computed for each of them: less than what a launch takes.
// CHECK-LABEL: @shared
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT: graph.kernel
// CPU-LABEL: @shared
// CPU-COUNT-2: graph.kernel
func.func @shared(%x: tensor<4x3x224x224xf32>, %p: tensor<4x1x224x224xf32>) -> tensor<4x3x224x224xf32> {
  %0 = graph.floor %p : (tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %1 = graph.sub %p, %0 : (tensor<4x1x224x224xf32>, tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %2 = graph.abs %1 : (tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %3 = graph.sqrt %2 : (tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %4 = graph.add %3, %1 : (tensor<4x1x224x224xf32>, tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %5 = graph.mul %x, %4 : (tensor<4x3x224x224xf32>, tensor<4x1x224x224xf32>) -> tensor<4x3x224x224xf32>
  return %5 : tensor<4x3x224x224xf32>
}

// -----

// Of 64 channels it is not.
// CHECK-LABEL: @many
// CHECK-COUNT-2: graph.kernel
func.func @many(%x: tensor<4x64x224x224xf32>, %p: tensor<4x1x224x224xf32>) -> tensor<4x64x224x224xf32> {
  %0 = graph.floor %p : (tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %1 = graph.sub %p, %0 : (tensor<4x1x224x224xf32>, tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %2 = graph.abs %1 : (tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %3 = graph.sqrt %2 : (tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %4 = graph.add %3, %1 : (tensor<4x1x224x224xf32>, tensor<4x1x224x224xf32>) -> tensor<4x1x224x224xf32>
  %5 = graph.mul %x, %4 : (tensor<4x64x224x224xf32>, tensor<4x1x224x224xf32>) -> tensor<4x64x224x224xf32>
  return %5 : tensor<4x64x224x224xf32>
}

// -----

// What is joined of joined parts is one kernel on a GPU.
// CHECK-LABEL: @joined
// CHECK-COUNT-1: graph.kernel
// CHECK-NOT: graph.kernel
// CPU-LABEL: @joined
// CPU-COUNT-2: graph.kernel
func.func @joined(%a: tensor<64x33xf32>, %b: tensor<64x33xf32>, %c: tensor<64x66xf32>) -> tensor<128x66xf32> {
  %0 = graph.concat %a, %b {axis = 1} : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x66xf32>
  %1 = graph.concat %0, %c {axis = 0} : (tensor<64x66xf32>, tensor<64x66xf32>) -> tensor<128x66xf32>
  return %1 : tensor<128x66xf32>
}
